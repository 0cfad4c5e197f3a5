//! Which pods get `sidecar.istio.io/interceptionMode` when they are created, and which existing
//! pods have the requested mode. Pure. The webhook decides by it, the operator counts by it, and
//! the plan's `build::pod_policy` expresses the same decision in CEL. [`redirect`] decides about
//! pods with a proxy of their own.
//!
//! Whether Istio will inject a sidecar is predicted from the same inputs as its injector, in the
//! same order: host network, ignored namespaces, the labels that its webhooks select by, then the
//! pod label `sidecar.istio.io/inject`, then the annotation of the same name. Inputs that only
//! Istio's configuration has (`neverInjectSelector`, existing revisions) are ignored: the
//! annotation has no effect on a pod without a sidecar.

mod effect;
pub mod redirect;

use std::collections::BTreeMap;
use std::fmt;

use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};
use serde::Deserialize;

pub use self::effect::{Effect, Sidecar};
use crate::IngressSourcePreserve;
use crate::age::by_age;
use crate::names::INTERCEPTION_MODE_ANNOTATION;
use crate::preserve::{InterceptionMode, Redirect, Sidecars, Via};
use crate::selector::matcher;

#[cfg(test)]
mod tests;

/// Labels or annotations.
pub type Labels = BTreeMap<String, String>;

/// Namespaces whose pods Istio never injects.
pub const SYSTEM_NAMESPACES: [&str; 4] =
    ["kube-node-lease", "kube-public", "kube-system", "local-path-storage"];

/// Set by Istio on pods that it has injected.
pub const STATUS_ANNOTATION: &str = "sidecar.istio.io/status";
/// On a pod, as label or annotation: whether it gets a sidecar.
pub const INJECT: &str = "sidecar.istio.io/inject";
/// On a pod: the injection templates to use, by default the sidecar.
pub const TEMPLATES_ANNOTATION: &str = "inject.istio.io/templates";
/// On a pod: proxy settings, as YAML.
pub const PROXY_CONFIG_ANNOTATION: &str = "proxy.istio.io/config";
/// On a namespace: whether its pods get a sidecar.
pub const NAMESPACE_INJECTION_LABEL: &str = "istio-injection";
/// On a namespace or a pod: which revision of Istio injects.
pub const REVISION_LABEL: &str = "istio.io/rev";
/// On a namespace: the enforced Pod Security level.
pub const POD_SECURITY_LABEL: &str = "pod-security.kubernetes.io/enforce";

/// The relevant fields of a pod.
#[derive(Clone, Copy, Debug)]
pub struct Pod<'a> {
    /// Its labels.
    pub labels: &'a Labels,
    /// Its annotations.
    pub annotations: &'a Labels,
    /// Whether it uses the host network.
    pub host_network: bool,
}

/// The relevant fields of a namespace.
#[derive(Clone, Copy, Debug)]
pub struct Namespace<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its labels.
    pub labels: &'a Labels,
}

/// The decision for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Set the annotation.
    Set(InterceptionMode),
    /// Leave the pod unchanged.
    Leave(Reason),
}

/// Why a pod is left unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No entry selects it.
    NotSelected,
    /// It is in a system namespace or the project's own namespace.
    ExcludedNamespace,
    /// It uses the host network, where Istio injects no sidecar.
    HostNetwork,
    /// Istio has already injected it, so the annotation would have no effect.
    AlreadyInjected,
    /// Istio will not inject it.
    NotInjected,
    /// The injection template is not a sidecar, for example a gateway, which intercepts nothing.
    NoSidecar,
    /// The pod itself sets an interception mode.
    Chosen {
        /// The annotation that sets it.
        annotation: &'static str,
        /// Whether it equals the requested mode.
        same: bool,
    },
    /// The namespace's Pod Security level would reject a pod with such a sidecar.
    PodSecurity {
        /// The enforced level.
        level: String,
    },
}

impl Reason {
    /// The admission warning for the user who creates the pod, if any.
    pub fn warning(&self, wanted: InterceptionMode) -> Option<String> {
        match self {
            Self::Chosen { annotation, same: false } => Some(format!(
                "annotation {annotation} sets another interception mode than the IngressSourcePreserve, which asks for {wanted}; \
                 the pod was not changed, and the application will not see the client's IP. Remove it to get {wanted}."
            )),
            Self::PodSecurity { level } => Some(format!(
                "{INTERCEPTION_MODE_ANNOTATION}={wanted} was not set: the sidecar would need NET_ADMIN, which Pod Security level {level:?} of \
                 this namespace ({POD_SECURITY_LABEL}) does not admit. Use level privileged there, or exclude the namespace from spec.sidecars."
            )),
            _ => None,
        }
    }

    fn is_same(&self) -> bool {
        matches!(self, Self::Chosen { same: true, .. })
    }

    /// The name of the reason.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::NotSelected => "NotSelected",
            Self::ExcludedNamespace => "ExcludedNamespace",
            Self::HostNetwork => "HostNetwork",
            Self::AlreadyInjected => "AlreadyInjected",
            Self::NotInjected => "NotInjected",
            Self::NoSidecar => "NoSidecar",
            Self::Chosen { .. } => "Chosen",
            Self::PodSecurity { .. } => "PodSecurity",
        }
    }
}

impl fmt::Display for InterceptionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The parsed entries of all objects.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    entries: Vec<Entry>,
    own_namespace: String,
}

#[derive(Clone, Debug)]
struct Entry {
    object: String,
    namespaces: Selector,
    pods: Selector,
    change: Change,
    via: Via,
}

/// What an entry asks for.
#[derive(Clone, Debug)]
enum Change {
    Mode(InterceptionMode),
    Redirect(Box<Redirect>),
}

impl Entry {
    fn of(object: String, entry: &Sidecars) -> Option<Self> {
        let change = match &entry.redirect {
            Some(redirect) => Change::Redirect(Box::new(redirect.clone())),
            None => Change::Mode(entry.interception_mode.unwrap_or_default()),
        };
        Some(Self {
            object,
            namespaces: matcher(&entry.namespace_selector).ok()?,
            pods: matcher(&entry.pod_selector).ok()?,
            change,
            via: entry.via,
        })
    }

    fn selects(&self, namespace: Namespace<'_>, labels: &Labels) -> bool {
        self.namespaces.matches(namespace.labels) && self.pods.matches(labels)
    }
}

impl Rules {
    /// The entries of objects that are not being deleted, from the oldest object to the newest.
    /// Entries with an invalid selector are skipped.
    pub fn new<'a>(
        objects: impl IntoIterator<Item = &'a IngressSourcePreserve>,
        own_namespace: impl Into<String>,
    ) -> Self {
        let objects = objects.into_iter().filter(|object| object.metadata.deletion_timestamp.is_none());
        let entries = by_age(objects).into_iter().flat_map(|object| {
            object.spec.sidecars.iter().filter_map(|entry| Entry::of(object.name_any(), entry))
        });
        Self { entries: entries.collect(), own_namespace: own_namespace.into() }
    }

    /// Keeps only the entries with this `via`.
    #[must_use]
    pub fn via(mut self, via: Via) -> Self {
        self.entries.retain(|entry| entry.via == via);
        self
    }

    /// Keeps only the entries of one object.
    #[must_use]
    pub fn of(mut self, object: &str) -> Self {
        self.entries.retain(|entry| entry.object == object);
        self
    }

    /// Keeps only the entries for Istio's sidecars.
    #[must_use]
    pub fn for_istio(mut self) -> Self {
        self.entries.retain(|entry| matches!(entry.change, Change::Mode(_)));
        self
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether an entry selects the namespace.
    pub fn reaches(&self, namespace: Namespace<'_>) -> bool {
        self.entries.iter().any(|entry| entry.namespaces.matches(namespace.labels))
    }

    /// The mode of the first entry for Istio's sidecars that selects the pod.
    pub fn wanted(&self, namespace: Namespace<'_>, labels: &Labels) -> Option<InterceptionMode> {
        let mut selecting = self.entries.iter().filter(|entry| entry.selects(namespace, labels));
        selecting.find_map(|entry| match entry.change {
            Change::Mode(mode) => Some(mode),
            Change::Redirect(_) => None,
        })
    }

    /// The decision for a new pod, and the requested mode.
    pub fn decide(&self, namespace: Namespace<'_>, pod: Pod<'_>) -> (Decision, InterceptionMode) {
        let Some(mode) = self.wanted(namespace, pod.labels) else {
            return (Decision::Leave(Reason::NotSelected), InterceptionMode::default());
        };
        let left = self
            .cannot(namespace, pod)
            .or_else(|| chosen(pod.annotations, mode))
            .or_else(|| pod_security(namespace));
        (left.map_or(Decision::Set(mode), Decision::Leave), mode)
    }

    fn is_excluded(&self, namespace: Namespace<'_>) -> bool {
        namespace.name == self.own_namespace || SYSTEM_NAMESPACES.contains(&namespace.name)
    }

    /// Why the pod will have no sidecar that the annotation affects.
    fn cannot(&self, namespace: Namespace<'_>, pod: Pod<'_>) -> Option<Reason> {
        if self.is_excluded(namespace) {
            Some(Reason::ExcludedNamespace)
        } else if pod.host_network {
            Some(Reason::HostNetwork)
        } else if pod.annotations.contains_key(STATUS_ANNOTATION) {
            Some(Reason::AlreadyInjected)
        } else if !injected(namespace.labels, pod) {
            Some(Reason::NotInjected)
        } else if !takes_sidecar(pod.annotations) {
            Some(Reason::NoSidecar)
        } else {
            None
        }
    }
}

/// Whether Istio's injector selects the pod and does not skip it.
fn injected(namespace: &Labels, pod: Pod<'_>) -> bool {
    let label = pod.labels.get(INJECT).map(String::as_str);
    let selected = match namespace.get(NAMESPACE_INJECTION_LABEL).map(String::as_str) {
        Some(injection) => injection == "enabled",
        None if namespace.contains_key(REVISION_LABEL) => true,
        None => label == Some("true") || pod.labels.contains_key(REVISION_LABEL),
    };
    let refused = match label {
        Some(label) => label == "false",
        None => pod.annotations.get(INJECT).is_some_and(|annotation| annotation == "false"),
    };
    selected && !refused
}

/// Whether the injection templates include the sidecar.
fn takes_sidecar(annotations: &Labels) -> bool {
    annotations
        .get(TEMPLATES_ANNOTATION)
        .is_none_or(|templates| templates.split(',').any(|template| template.trim() == "sidecar"))
}

/// The interception mode that the pod itself sets. In the proxy settings any mention counts, as in
/// the policies for pods, because CEL cannot parse YAML.
fn chosen(annotations: &Labels, mode: InterceptionMode) -> Option<Reason> {
    if let Some(value) = annotations.get(INTERCEPTION_MODE_ANNOTATION) {
        let same = value == mode.as_str();
        return Some(Reason::Chosen { annotation: INTERCEPTION_MODE_ANNOTATION, same });
    }
    let settings = annotations.get(PROXY_CONFIG_ANNOTATION)?;
    settings.contains("interceptionMode").then(|| Reason::Chosen {
        annotation: PROXY_CONFIG_ANNOTATION,
        same: mode_in(settings).is_some_and(|value| value == mode.as_str()),
    })
}

/// The relevant field of Istio's `ProxyConfig`. The others are skipped, and their aliases are not
/// expanded.
#[derive(Deserialize)]
struct ProxySettings {
    #[serde(rename = "interceptionMode")]
    interception_mode: Option<String>,
}

/// The mode in a pod's proxy settings. Anyone who creates pods writes them, so their size is
/// limited: parsed YAML takes many times the memory of its text.
fn mode_in(settings: &str) -> Option<String> {
    const MAX_BYTES: usize = 16 * 1024;
    let settings = Some(settings).filter(|settings| settings.len() <= MAX_BYTES)?;
    serde_yaml::from_str::<ProxySettings>(settings).ok()?.interception_mode
}

/// The Pod Security level that would reject the sidecar. The API server treats unknown levels as
/// the strictest.
fn pod_security(namespace: Namespace<'_>) -> Option<Reason> {
    let level = namespace.labels.get(POD_SECURITY_LABEL)?;
    (level != "privileged").then(|| Reason::PodSecurity { level: level.clone() })
}
