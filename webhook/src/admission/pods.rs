//! What is answered about a pod. Pure.

use isp_api::names::INTERCEPTION_MODE_ANNOTATION;
use isp_api::preserve::InterceptionMode;
use isp_api::sidecar::{Decision, Labels, Namespace, Pod, Rules};
use serde::Deserialize;
use serde_json::{Value, json};

use super::review::{Answer, BadReview, Operation, Request};

/// A pod, as far as it is looked at.
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

/// A question about a pod that is about to be created. Others are not asked.
#[derive(Debug)]
pub(crate) struct Question {
    uid: String,
    pub(crate) namespace: String,
    pod: PodReview,
}

impl Question {
    /// None: nothing is asked that could be answered with anything but yes, which is with it.
    pub(crate) fn new(request: Request<PodReview>) -> Result<Result<Self, Answer>, BadReview> {
        let Request { uid, operation, namespace, sub_resource, object, .. } = request;
        let is_whole = sub_resource.is_none_or(|part| part.is_empty());
        let (Operation::Create, true, Some(namespace)) = (operation, is_whole, namespace) else {
            return Ok(Err(Answer::allow(uid)));
        };
        let pod = object.ok_or(BadReview::NoObject("object", operation))?;
        Ok(Ok(Self { uid, namespace, pod }))
    }

    /// The answer, and a word for what it is.
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

    /// When it is not known what the namespace asks for.
    pub(crate) fn unknown(self) -> Answer {
        Answer::allow(self.uid)
    }
}

fn annotate(has_annotations: bool, mode: InterceptionMode) -> Value {
    if has_annotations {
        let key = INTERCEPTION_MODE_ANNOTATION.replace('~', "~0").replace('/', "~1");
        json!([{"op": "add", "path": format!("/metadata/annotations/{key}"), "value": mode}])
    } else {
        json!([{"op": "add", "path": "/metadata/annotations", "value": {INTERCEPTION_MODE_ANNOTATION: mode}}])
    }
}
