//! The decision about a pod. Pure.

use isp_api::names::INTERCEPTION_MODE_ANNOTATION;
use isp_api::preserve::InterceptionMode;
use isp_api::sidecar::{Decision, Labels, Namespace, Pod, Rules};
use isp_plan::build::pod_redirect::{Outcome, redirected};
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, diff};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::review::{Answer, BadReview, Operation, Request};

/// A pod as it was sent. Only rules with `redirect` need all of it.
pub(crate) type PodReview = Box<RawValue>;

/// The fields of a pod that the decision about its interception mode needs.
#[derive(Debug, Default, Deserialize)]
struct Fields {
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
    fields: Fields,
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
        let fields = serde_json::from_str(pod.get())?;
        Ok(Self::Decide(NewPod { uid, namespace, fields, pod }))
    }
}

impl NewPod {
    /// The response, and its outcome for the metrics. `image` is that of the init container.
    pub(crate) fn answer(
        self,
        rules: &Rules,
        labels: &Labels,
        image: &str,
    ) -> Result<(Answer, &'static str), BadReview> {
        let namespace = Namespace { name: &self.namespace, labels };
        let (mode, mut warnings, word) = self.mode(rules, namespace);
        let Some((pod, outcome)) = self.redirect(rules, namespace, image)? else {
            let answer = match mode {
                Some(patch) => Answer::patch(self.uid, &patch),
                None => Answer::allow(self.uid),
            };
            return Ok((answer.with_warnings(warnings), word));
        };
        warnings.extend(outcome.warnings);
        let mut wanted = outcome.pod.unwrap_or_else(|| pod.clone());
        if let Some(patch) = mode {
            // A pod without metadata is none, and left alone.
            let _ = json_patch::patch(&mut wanted, &patch);
        }
        let patch = diff(&pod, &wanted);
        let answer =
            if patch.0.is_empty() { Answer::allow(self.uid) } else { Answer::patch(self.uid, &patch) };
        Ok((answer.with_warnings(warnings), if outcome.word == "NotSelected" { word } else { outcome.word }))
    }

    /// The annotation that the pod gets, the warnings, and the outcome.
    fn mode(&self, rules: &Rules, namespace: Namespace<'_>) -> (Option<Patch>, Vec<String>, &'static str) {
        let none = Labels::new();
        let Metadata { labels, annotations } = &self.fields.metadata;
        let pod = Pod {
            labels: labels.as_ref().unwrap_or(&none),
            annotations: annotations.as_ref().unwrap_or(&none),
            host_network: self.fields.spec.host_network.unwrap_or_default(),
        };
        match rules.decide(namespace, pod) {
            (Decision::Set(mode), _) => (Some(annotate(annotations.is_some(), mode)), Vec::new(), "Set"),
            (Decision::Leave(reason), mode) => {
                (None, reason.warning(mode).into_iter().collect(), reason.as_str())
            }
        }
    }

    /// The pod, and what becomes of it by an entry with `redirect`. None if there is no such entry.
    fn redirect(
        &self,
        rules: &Rules,
        namespace: Namespace<'_>,
        image: &str,
    ) -> Result<Option<(Value, Outcome)>, BadReview> {
        if !rules.redirects() {
            return Ok(None);
        }
        let pod: Value = serde_json::from_str(self.pod.get())?;
        let outcome = redirected(rules, namespace, &pod, image)?;
        Ok(Some((pod, outcome)))
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
