//! Which pods get `sidecar.istio.io/interceptionMode` when they are created, and which of those that exist have what they should.
//! Pure. The webhook answers by it, the operator counts by it, and [`policy`] says the same in the API server's own language.
//!
//! Whether Istio will inject a sidecar is told from what its injector looks at, in its order: the host's network, its ignored
//! namespaces, the labels by which its webhooks select, then the pod's label `sidecar.istio.io/inject` before the annotation of
//! the same name. What only its configuration knows (`neverInjectSelector`, which revisions exist) is not looked at: an annotation
//! on a pod without a sidecar does nothing.

mod effect;
pub mod policy;

use std::collections::BTreeMap;
use std::fmt;

use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};

pub use self::effect::{Effect, Sidecar};
use crate::IngressSourcePreserve;
use crate::names::INTERCEPTION_MODE_ANNOTATION;
use crate::preserve::{InterceptionMode, Via};
use crate::selector::matcher;

#[cfg(test)]
mod tests;

/// Labels or annotations.
pub type Labels = BTreeMap<String, String>;

/// Namespaces whose pods Istio never injects.
pub const SYSTEM_NAMESPACES: [&str; 4] =
    ["kube-node-lease", "kube-public", "kube-system", "local-path-storage"];

/// Istio's mark on a pod that it has injected.
pub const STATUS_ANNOTATION: &str = "sidecar.istio.io/status";
/// On a pod, as label or annotation: whether it gets a sidecar.
pub const INJECT: &str = "sidecar.istio.io/inject";
/// On a pod: what is injected, if not a sidecar.
pub const TEMPLATES_ANNOTATION: &str = "inject.istio.io/templates";
/// On a pod: settings of its proxy, as YAML.
pub const PROXY_CONFIG_ANNOTATION: &str = "proxy.istio.io/config";
/// On a namespace: whether its pods get a sidecar.
pub const NAMESPACE_INJECTION_LABEL: &str = "istio-injection";
/// On a namespace or a pod: which revision of Istio injects.
pub const REVISION_LABEL: &str = "istio.io/rev";
/// On a namespace: the Pod Security level that pods must keep to.
pub const POD_SECURITY_LABEL: &str = "pod-security.kubernetes.io/enforce";

/// What of a pod matters.
#[derive(Clone, Copy, Debug)]
pub struct Pod<'a> {
    /// Its labels.
    pub labels: &'a Labels,
    /// Its annotations.
    pub annotations: &'a Labels,
    /// Whether it uses the network of its node.
    pub host_network: bool,
}

/// What of a namespace matters.
#[derive(Clone, Copy, Debug)]
pub struct Namespace<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its labels.
    pub labels: &'a Labels,
}

/// What becomes of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It gets the annotation.
    Set(InterceptionMode),
    /// It stays as it is.
    Leave(Reason),
}

/// Why a pod stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No entry selects it.
    NotSelected,
    /// Its namespace is the cluster's or the project's own.
    ExcludedNamespace,
    /// It uses the network of its node, where there is no sidecar.
    HostNetwork,
    /// Istio has been there already; an annotation would change nothing any more.
    AlreadyInjected,
    /// Istio will not inject it.
    NotInjected,
    /// What is injected is no sidecar but, say, a gateway, which intercepts nothing.
    NoSidecar,
    /// Its author has chosen.
    Chosen {
        /// The annotation that says so.
        annotation: &'static str,
        /// Whether it says what the entry would.
        same: bool,
    },
    /// Its namespace would refuse a pod with such a sidecar.
    PodSecurity {
        /// The enforced level.
        level: String,
    },
}

impl Reason {
    /// What the author of the pod should hear.
    pub fn warning(&self, wanted: InterceptionMode) -> Option<String> {
        match self {
            Self::Chosen { annotation, same: false } => Some(format!(
                "annotation {annotation} chooses another interception mode than the IngressSourcePreserve, which asks for {wanted}; \
                 it is left as it is, and the application will not see the client's address. Remove it to have {wanted}."
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

    /// A word for it.
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

/// The entries of all objects, ready to be asked.
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
    mode: InterceptionMode,
    via: Via,
}

impl Rules {
    /// The entries of the objects that are not being deleted. One with a selector that cannot be read selects nothing.
    pub fn new<'a>(
        objects: impl IntoIterator<Item = &'a IngressSourcePreserve>,
        own_namespace: impl Into<String>,
    ) -> Self {
        let objects = objects.into_iter().filter(|object| object.metadata.deletion_timestamp.is_none());
        let entries = objects.flat_map(|object| {
            object.spec.sidecars.iter().filter_map(|entry| {
                Some(Entry {
                    object: object.name_any(),
                    namespaces: matcher(&entry.namespace_selector).ok()?,
                    pods: matcher(&entry.pod_selector).ok()?,
                    mode: entry.interception_mode,
                    via: entry.via,
                })
            })
        });
        Self { entries: entries.collect(), own_namespace: own_namespace.into() }
    }

    /// Only the entries that are carried out in this way.
    #[must_use]
    pub fn via(mut self, via: Via) -> Self {
        self.entries.retain(|entry| entry.via == via);
        self
    }

    /// Only the entries of one object.
    #[must_use]
    pub fn of(mut self, object: &str) -> Self {
        self.entries.retain(|entry| entry.object == object);
        self
    }

    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether any pod of a namespace may be selected.
    pub fn reaches(&self, namespace: Namespace<'_>) -> bool {
        self.entries.iter().any(|entry| entry.namespaces.matches(namespace.labels))
    }

    /// The mode that a pod should have, if anything selects it.
    pub fn wanted(&self, namespace: Namespace<'_>, labels: &Labels) -> Option<InterceptionMode> {
        let selects =
            |entry: &&Entry| entry.namespaces.matches(namespace.labels) && entry.pods.matches(labels);
        self.entries.iter().find(selects).map(|entry| entry.mode)
    }

    /// What becomes of a pod that is about to be created, and what mode it was about.
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

    /// Why a pod will have no sidecar that an annotation could reach.
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

/// Whether Istio's injector selects the pod and then goes through with it.
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

/// Whether a sidecar is among what is injected.
fn takes_sidecar(annotations: &Labels) -> bool {
    annotations
        .get(TEMPLATES_ANNOTATION)
        .is_none_or(|templates| templates.split(',').any(|template| template.trim() == "sidecar"))
}

/// What the author of the pod has said about the mode. In the settings of the proxy any mention counts.
fn chosen(annotations: &Labels, mode: InterceptionMode) -> Option<Reason> {
    if let Some(value) = annotations.get(INTERCEPTION_MODE_ANNOTATION) {
        let same = value == mode.as_str();
        return Some(Reason::Chosen { annotation: INTERCEPTION_MODE_ANNOTATION, same });
    }
    let settings = annotations.get(PROXY_CONFIG_ANNOTATION)?;
    settings.contains("interceptionMode").then(|| Reason::Chosen {
        annotation: PROXY_CONFIG_ANNOTATION,
        same: settings.contains(mode.as_str()),
    })
}

/// The level that would refuse the sidecar. A level that does not exist is taken for the strictest by the API server.
fn pod_security(namespace: Namespace<'_>) -> Option<Reason> {
    let level = namespace.labels.get(POD_SECURITY_LABEL)?;
    (level != "privileged").then(|| Reason::PodSecurity { level: level.clone() })
}
