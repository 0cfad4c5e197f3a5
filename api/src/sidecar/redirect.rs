//! Which pods get the init container of `spec.sidecars[].redirect`, and which have it. Pure. The
//! webhook decides by it, the operator counts by it.
//!
//! A pod that Istio injects is left to Istio: two programs would write rules for the same packets.
//! A pod in the host network is left alone: the rules would be those of its node.

mod warnings;

use k8s_openapi::api::core::v1::{Container, PodSpec, SecurityContext};

use super::{
    Change, Labels, Namespace, POD_SECURITY_LABEL, Pod, Rules, STATUS_ANNOTATION, injected, pod_security,
    takes_sidecar,
};
use crate::names::REDIRECT_CONTAINER;
use crate::preserve::Redirect;

pub use self::warnings::warnings;

/// On the copy of a static pod in the API, which the kubelet compares with its own file.
const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";
const OS_LABEL: &str = "kubernetes.io/os";
const WINDOWS: &str = "windows";
const NET_ADMIN: &str = "NET_ADMIN";

/// The annotations of a pod that the decision depends on.
pub const ANNOTATIONS: [&str; 4] =
    [super::INJECT, super::TEMPLATES_ANNOTATION, STATUS_ANNOTATION, MIRROR_ANNOTATION];

/// The relevant fields of a pod's spec.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Whether it uses the host network.
    pub host_network: bool,
    /// Whether it runs on Windows.
    pub windows: bool,
    /// The container with the name of ours.
    pub named: Named,
}

/// The container of a pod that has the name of our init container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Named {
    /// There is none.
    #[default]
    None,
    /// It is ours, with these arguments.
    Ours(Vec<String>),
    /// It is another container.
    Foreign,
}

impl Shape {
    /// Reads a spec.
    pub fn of(spec: &PodSpec) -> Self {
        let os = spec.os.as_ref().map(|os| os.name.as_str());
        let selected = spec.node_selector.as_ref().and_then(|labels| labels.get(OS_LABEL));
        let selected = selected.map(String::as_str);
        Self {
            host_network: spec.host_network == Some(true),
            windows: os == Some(WINDOWS) || selected == Some(WINDOWS),
            named: Named::of(spec),
        }
    }
}

impl Named {
    fn of(spec: &PodSpec) -> Self {
        let has_name = |container: &&Container| container.name == REDIRECT_CONTAINER;
        let init = spec.init_containers.iter().flatten().find(has_name);
        match init {
            Some(container) if is_ours(container) => Self::Ours(container.args.clone().unwrap_or_default()),
            Some(_) => Self::Foreign,
            None if spec.containers.iter().any(|container| has_name(&container)) => Self::Foreign,
            None => Self::None,
        }
    }
}

/// Whether an init container of our name is the one that the webhook adds. It has a security
/// context that fits no other purpose.
fn is_ours(container: &Container) -> bool {
    let Some(SecurityContext { capabilities: Some(capabilities), .. }) = &container.security_context else {
        return false;
    };
    let only = |list: &Option<Vec<String>>, name: &str| list.as_deref().is_some_and(|list| list == [name]);
    container.restart_policy.is_none()
        && only(&capabilities.add, NET_ADMIN)
        && only(&capabilities.drop, "ALL")
}

/// The entry that decides about a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// The object of the entry.
    pub object: &'a str,
    /// What it asks for.
    pub redirect: &'a Redirect,
    /// The object of a later entry that selects the pod, too, and asks for something else.
    pub contradicted_by: Option<&'a str>,
}

/// The decision about a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision<'a> {
    /// Add the init container.
    Add(Wanted<'a>),
    /// Leave the pod unchanged: it has the init container, with these arguments.
    Has(Wanted<'a>, &'a [String]),
    /// Leave the pod unchanged.
    Leave(Reason),
}

/// Why a pod gets no init container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No entry with `redirect` selects it.
    NotSelected,
    /// It is in a system namespace or the project's own namespace.
    ExcludedNamespace,
    /// It is the copy of a static pod, which the kubelet would restore.
    StaticPod,
    /// It uses the host network.
    HostNetwork,
    /// It runs on Windows.
    Windows,
    /// Istio injects it, or has injected it.
    Istio,
    /// It has another container of this name.
    NameTaken,
    /// The namespace's Pod Security level would reject the init container.
    PodSecurity {
        /// The enforced level.
        level: String,
    },
}

impl Reason {
    /// The admission warning for the user who creates the pod, if any.
    pub fn warning(&self) -> Option<String> {
        let why = match self {
            Self::NotSelected | Self::ExcludedNamespace | Self::StaticPod => return None,
            Self::HostNetwork => "it uses the host network (spec.hostNetwork), so the rules would redirect the connections of its node. \
                 Use the pod network, or exclude the pod by podSelector."
                .to_owned(),
            Self::Windows => "it runs on Windows, which has no such packet rules. Exclude the pod by podSelector.".to_owned(),
            Self::Istio => "Istio injects a sidecar into it and redirects its connections there. Label the pod \
                 sidecar.istio.io/inject=false, or exclude it by podSelector."
                .to_owned(),
            Self::NameTaken => format!("it already has another container named {REDIRECT_CONTAINER:?}. Rename that container."),
            Self::PodSecurity { level } => format!(
                "the init container needs {NET_ADMIN}, which Pod Security level {level:?} of this namespace ({POD_SECURITY_LABEL}) does not \
                 admit. Use level privileged there, or exclude the namespace from spec.sidecars."
            ),
        };
        Some(format!(
            "spec.sidecars of an IngressSourcePreserve selects the pod, but its connections are not redirected to its proxy: {why}"
        ))
    }

    /// The name of the reason.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::NotSelected => "NotSelected",
            Self::ExcludedNamespace => "ExcludedNamespace",
            Self::StaticPod => "StaticPod",
            Self::HostNetwork => "HostNetwork",
            Self::Windows => "Windows",
            Self::Istio => "Istio",
            Self::NameTaken => "NameTaken",
            Self::PodSecurity { .. } => "PodSecurity",
        }
    }
}

impl Rules {
    /// Whether any entry has `redirect`.
    pub fn redirects(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.change, Change::Redirect(_)))
    }

    /// The first entry with `redirect` that selects the pod.
    fn wanted_redirect(&self, namespace: Namespace<'_>, labels: &Labels) -> Option<Wanted<'_>> {
        let mut selecting = self.entries.iter().filter_map(|entry| match &entry.change {
            Change::Redirect(redirect) if entry.selects(namespace, labels) => {
                Some((entry.object.as_str(), redirect.as_ref()))
            }
            _ => None,
        });
        let (object, redirect) = selecting.next()?;
        let contradicted_by = selecting.find(|(_, other)| *other != redirect).map(|(object, _)| object);
        Some(Wanted { object, redirect, contradicted_by })
    }

    /// The decision about the init container of a pod.
    pub fn decide_redirect<'a>(
        &'a self,
        namespace: Namespace<'_>,
        labels: &Labels,
        annotations: &Labels,
        shape: &'a Shape,
    ) -> Decision<'a> {
        let Some(wanted) = self.wanted_redirect(namespace, labels) else {
            return Decision::Leave(Reason::NotSelected);
        };
        let pod = Pod { labels, annotations, host_network: shape.host_network };
        let reason = if self.is_excluded(namespace) {
            Reason::ExcludedNamespace
        } else if annotations.contains_key(MIRROR_ANNOTATION) {
            Reason::StaticPod
        } else if shape.host_network {
            Reason::HostNetwork
        } else if shape.windows {
            Reason::Windows
        } else if is_istios(namespace, pod) {
            Reason::Istio
        } else if let Named::Ours(arguments) = &shape.named {
            return Decision::Has(wanted, arguments);
        } else if shape.named == Named::Foreign {
            Reason::NameTaken
        } else if let Some(super::Reason::PodSecurity { level }) = pod_security(namespace) {
            Reason::PodSecurity { level }
        } else {
            return Decision::Add(wanted);
        };
        Decision::Leave(reason)
    }
}

/// Whether Istio has injected the pod, or will.
fn is_istios(namespace: Namespace<'_>, pod: Pod<'_>) -> bool {
    pod.annotations.contains_key(STATUS_ANNOTATION)
        || (injected(namespace.labels, pod) && takes_sidecar(pod.annotations))
}
