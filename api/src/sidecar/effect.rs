//! The state of existing pods.

use k8s_openapi::api::core::v1::{Container, Pod as PodObject};

use super::{Labels, Namespace, Rules, chosen, pod_security};
use crate::names::INTERCEPTION_MODE_ANNOTATION;

const PROXY: &str = "istio-proxy";
const INIT: &str = "istio-init";
const MODE_VARIABLE: &str = "ISTIO_META_INTERCEPTION_MODE";
/// Connections to the application come from the sidecar itself.
const HIDING_MODE: &str = "REDIRECT";

/// The injected sidecar of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sidecar {
    /// The mode that the proxy was started with.
    pub proxy: String,
    /// The mode that the pod's rules were set up for. None with istio-cni, which follows the
    /// annotation.
    pub rules: Option<String>,
}

impl Sidecar {
    /// Finds the sidecar among the containers or, as a native sidecar, among the init containers.
    /// Gateways do not count.
    pub fn of(pod: &PodObject) -> Option<Self> {
        let spec = pod.spec.as_ref()?;
        let all = || spec.containers.iter().chain(spec.init_containers.iter().flatten());
        let proxy = all().find(|container| container.name == PROXY).filter(|proxy| is_sidecar(proxy))?;
        let mode =
            proxy.env.iter().flatten().find(|variable| variable.name == MODE_VARIABLE)?.value.clone()?;
        let init = all().find(|container| container.name == INIT);
        Some(Self { proxy: mode, rules: init.and_then(|init| argument(init, "-m")) })
    }

    /// Whether the application sees the sidecar's address, 127.0.0.6, instead of its peer's.
    pub fn hides_peer(&self) -> bool {
        self.proxy == HIDING_MODE
    }
}

fn is_sidecar(proxy: &Container) -> bool {
    proxy.args.iter().flatten().take(2).any(|argument| argument == "sidecar")
}

/// The argument that follows a flag.
fn argument(container: &Container, flag: &str) -> Option<String> {
    container.args.iter().flatten().skip_while(|argument| *argument != flag).nth(1).cloned()
}

/// Whether a pod's sidecar has the requested mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The sidecar runs in the requested mode.
    Consistent,
    /// The pod was created before the object or bypassed the webhook. Recreating it makes it
    /// consistent.
    Stale,
}

impl Rules {
    /// The state of an injected pod. None if no entry selects it, it sets another mode itself, or
    /// its namespace is excluded or does not admit the sidecar.
    pub fn effect(
        &self,
        namespace: Namespace<'_>,
        labels: &Labels,
        annotations: &Labels,
        sidecar: &Sidecar,
    ) -> Option<Effect> {
        let mode = self.wanted(namespace, labels)?;
        if self.is_excluded(namespace) || pod_security(namespace).is_some() {
            return None;
        }
        let annotation = annotations.get(INTERCEPTION_MODE_ANNOTATION);
        let as_annotated = annotation.is_none_or(|annotation| annotation == mode.as_str());
        let made_for = sidecar.rules.as_deref().unwrap_or(&sidecar.proxy);
        if sidecar.proxy == mode.as_str() && made_for == mode.as_str() && as_annotated {
            return Some(Effect::Consistent);
        }
        // With istio-cni the injector writes the annotation, so it was not set by the user.
        let is_the_authors = annotation.is_none() || sidecar.rules.is_some();
        match chosen(annotations, mode) {
            Some(reason) if is_the_authors && !reason.is_same() => None,
            _ => Some(Effect::Stale),
        }
    }
}
