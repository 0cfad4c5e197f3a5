//! The decision about a pod. Pure.

use isp_api::names::INTERCEPTION_MODE_ANNOTATION;
use isp_api::preserve::InterceptionMode;
use isp_api::sidecar::{Decision, Labels, Namespace, Pod, Rules};
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation};
use serde::Deserialize;
use serde_json::json;

use super::review::{Answer, BadReview, Operation, Request};

/// The fields of a pod that the decision needs.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct PodReview {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
struct Metadata {
    labels: Option<Labels>,
    annotations: Option<Labels>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    host_network: Option<bool>,
}

/// A pod that is being created.
#[derive(Debug)]
pub(crate) struct NewPod {
    uid: String,
    pub(crate) namespace: String,
    pod: PodReview,
}

/// How to handle a review.
#[derive(Debug)]
pub(crate) enum Asked {
    /// Decide about a new pod.
    Decide(NewPod),
    /// Nothing to decide: allow the request with this response.
    Allow(Answer),
}

impl Asked {
    pub(crate) fn of(request: Request<PodReview>) -> Result<Self, BadReview> {
        let Request { uid, operation, namespace, sub_resource, object, .. } = request;
        let is_whole = sub_resource.is_none_or(|part| part.is_empty());
        let (Operation::Create, true, Some(namespace)) = (operation, is_whole, namespace) else {
            return Ok(Self::Allow(Answer::allow(uid)));
        };
        let pod = object.ok_or(BadReview::NoObject("object", operation))?;
        Ok(Self::Decide(NewPod { uid, namespace, pod }))
    }
}

impl NewPod {
    /// The response, and its outcome for the metrics.
    pub(crate) fn answer(self, rules: &Rules, labels: &Labels) -> (Answer, &'static str) {
        let none = Labels::new();
        let Metadata { labels: pod_labels, annotations } = &self.pod.metadata;
        let pod = Pod {
            labels: pod_labels.as_ref().unwrap_or(&none),
            annotations: annotations.as_ref().unwrap_or(&none),
            host_network: self.pod.spec.host_network.unwrap_or_default(),
        };
        match rules.decide(Namespace { name: &self.namespace, labels }, pod) {
            (Decision::Set(mode), _) => {
                let patch = annotate(annotations.is_some(), mode);
                (Answer::patch(self.uid, &patch), "Set")
            }
            (Decision::Leave(reason), mode) => {
                let answer = Answer::allow(self.uid).with_warnings(reason.warning(mode));
                (answer, reason.as_str())
            }
        }
    }

    /// The response if the labels of the namespace are unknown.
    pub(crate) fn unknown(self) -> Answer {
        Answer::allow(self.uid)
    }
}

/// Adds the annotation, and the map of annotations if the pod has none.
fn annotate(has_annotations: bool, mode: InterceptionMode) -> Patch {
    let (path, value) = if has_annotations {
        (vec!["metadata", "annotations", INTERCEPTION_MODE_ANNOTATION], json!(mode))
    } else {
        (vec!["metadata", "annotations"], json!({INTERCEPTION_MODE_ANNOTATION: mode}))
    };
    Patch(vec![PatchOperation::Add(AddOperation { path: PointerBuf::from_tokens(path), value })])
}
