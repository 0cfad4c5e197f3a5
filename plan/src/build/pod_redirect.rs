//! A pod as `spec.sidecars[].redirect` wants it: with an init container that redirects the pod's
//! connections to the pod's own proxy. The webhook answers by it; the operator compares existing
//! pods with it.
//!
//! Who gets the container is decided by [`isp_api::sidecar::redirect`], and what its arguments mean
//! by [`isp_dataplane::redirect`].

mod settings;

use std::collections::BTreeMap;

use isp_api::names::REDIRECT_CONTAINER;
use isp_api::preserve::InitOrder;
use isp_api::sidecar::redirect::{self, Decision, Shape, Wanted};
use isp_api::sidecar::{Effect, Labels, Namespace, Rules};
use k8s_openapi::api::core::v1::{Capabilities, Container, PodSpec, ResourceRequirements, SecurityContext};
use serde::Deserialize;
use serde_json::{Value, json};

use super::agents::{confined, quantity};

pub use self::settings::{FieldProblem, arguments, problems};

#[cfg(test)]
mod tests;

/// The resources of the init container. Requests equal limits, so that a pod of the class
/// Guaranteed stays one.
const RESOURCES: [(&str, &str); 2] = [("cpu", "100m"), ("memory", "32Mi")];

/// What becomes of a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The pod as it should be; None if it is so already or left alone.
    pub pod: Option<Value>,
    /// `Redirected`, `HasRedirect`, or the reason why the pod is left alone.
    pub word: &'static str,
    /// Warnings for the user who creates the pod.
    pub warnings: Vec<String>,
}

impl Outcome {
    fn left(word: &'static str, warning: Option<String>) -> Self {
        Self { pod: None, word, warnings: warning.into_iter().collect() }
    }
}

/// The fields of a pod that the decision needs.
#[derive(Deserialize)]
struct Fields {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    spec: PodSpec,
}

#[derive(Default, Deserialize)]
struct Metadata {
    labels: Option<Labels>,
    annotations: Option<Labels>,
}

/// The pod as it should be, with an init container of this image. A pod that cannot be read is an
/// error; API servers send none.
pub fn redirected(
    rules: &Rules,
    namespace: Namespace<'_>,
    pod: &Value,
    image: &str,
) -> Result<Outcome, serde_json::Error> {
    let Fields { metadata, spec } = Fields::deserialize(pod)?;
    let labels = metadata.labels.unwrap_or_default();
    let annotations = metadata.annotations.unwrap_or_default();
    let shape = Shape::of(&spec);
    let wanted = match rules.decide_redirect(namespace, &labels, &annotations, &shape) {
        Decision::Leave(reason) => return Ok(Outcome::left(reason.as_str(), reason.warning())),
        Decision::Has(..) => return Ok(Outcome::left("HasRedirect", None)),
        Decision::Add(wanted) => wanted,
    };
    let arguments = match arguments(wanted.redirect) {
        Ok(arguments) => arguments,
        Err(problem) => return Ok(Outcome::left("InvalidRedirect", Some(cannot_work(wanted, &problem)))),
    };
    let container = serde_json::to_value(container(image, arguments))?;
    let warnings = redirect::warnings(wanted, &spec);
    let pod = with_container(pod.clone(), container, wanted.redirect.init_order);
    Ok(Outcome { pod: Some(pod), word: "Redirected", warnings })
}

/// The init container would fail, and the pod would never start.
fn cannot_work(wanted: Wanted<'_>, problem: &FieldProblem) -> String {
    format!(
        "IngressSourcePreserve {} selects the pod, but its connections are not redirected to its proxy: spec.sidecars[].redirect{problem}",
        wanted.object
    )
}

fn with_container(mut pod: Value, container: Value, order: InitOrder) -> Value {
    // A review may come from anybody, with anything in it.
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return pod };
    match (spec.entry("initContainers").or_insert(Value::Null), order) {
        (Value::Array(inits), InitOrder::First) => inits.insert(0, container),
        (Value::Array(inits), InitOrder::Last) => inits.push(container),
        (none, _) => *none = json!([container]),
    }
    pod
}

fn container(image: &str, arguments: Vec<String>) -> Container {
    let amounts: BTreeMap<_, _> = RESOURCES.map(quantity).into();
    Container {
        name: REDIRECT_CONTAINER.to_owned(),
        image: Some(image.to_owned()),
        args: Some(arguments),
        resources: Some(ResourceRequirements {
            requests: Some(amounts.clone()),
            limits: Some(amounts),
            ..ResourceRequirements::default()
        }),
        security_context: Some(SecurityContext {
            capabilities: Some(Capabilities {
                add: Some(vec!["NET_ADMIN".to_owned()]),
                drop: Some(vec!["ALL".to_owned()]),
            }),
            // Container runtimes give added capabilities to user 0 only. The pod may demand
            // another user for all its containers.
            run_as_non_root: Some(false),
            run_as_user: Some(0),
            run_as_group: Some(0),
            ..confined()
        }),
        ..Container::default()
    }
}

/// The state of an existing pod. None if it is left alone, or belongs to an entry of another
/// object.
pub fn effect(
    rules: &Rules,
    object: &str,
    namespace: Namespace<'_>,
    (labels, annotations): (&Labels, &Labels),
    shape: &Shape,
) -> Option<Effect> {
    let (wanted, has) = match rules.decide_redirect(namespace, labels, annotations, shape) {
        Decision::Leave(_) => return None,
        Decision::Has(wanted, arguments) => (wanted, Some(arguments)),
        Decision::Add(wanted) => (wanted, None),
    };
    let arguments = arguments(wanted.redirect).ok().filter(|_| wanted.object == object)?;
    Some(if has == Some(&arguments[..]) { Effect::Consistent } else { Effect::Stale })
}
