//! Pods whose proxy must pass the client's IP on to the application: Istio's sidecar, or a
//! container of their own.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Redirect;
use crate::{rules, selector};

/// How an Istio sidecar intercepts the traffic to its application. Only this mode of Istio
/// preserves the source IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum InterceptionMode {
    /// Transparent: the application sees the address of the peer.
    #[default]
    #[serde(rename = "TPROXY")]
    Tproxy,
}

impl InterceptionMode {
    /// The value of Istio's annotation.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tproxy => "TPROXY",
        }
    }
}

/// The component that changes the pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Via {
    /// The webhook, which also warns if it does not change a pod.
    #[default]
    Webhook,
    /// The API server, with a MutatingAdmissionPolicy and without a webhook call. Kubernetes 1.36
    /// or newer.
    Policy,
}

/// Pods that are changed when they are created: they get the annotation
/// `sidecar.istio.io/interceptionMode` or, with `redirect`, an init container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[x_kube(validation = rules::rule(
    "!has(self.redirect) || !has(self.interceptionMode)",
    "'the entry has interceptionMode ' + self.interceptionMode + ', which is for Istio, and redirect, which is for pods with a proxy of their \
     own: remove one of them'",
).field_path(".interceptionMode"))]
#[x_kube(validation = rules::rule(
    "!has(self.redirect) || self.via == 'Webhook'",
    "'\"' + self.via + '\" cannot add an init container in front of others, nor warn where it must not: use Webhook'",
).field_path(".via"))]
#[serde(rename_all = "camelCase")]
pub struct Sidecars {
    /// Selects the namespaces of the pods by their labels. It must not be empty: it would match all
    /// namespaces.
    #[schemars(schema_with = "selector::schema::non_empty")]
    pub namespace_selector: LabelSelector,

    /// Selects the pods in these namespaces by their labels. Unset or empty: all pods.
    #[serde(default)]
    #[schemars(schema_with = "selector::schema::any")]
    pub pod_selector: LabelSelector,

    /// For pods with Istio's sidecar: the value of the annotation. Unset without `redirect`:
    /// `TPROXY`, with which the application sees the address of the peer. The sidecar then needs
    /// `NET_ADMIN`, which the Pod Security level `restricted` does not admit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interception_mode: Option<InterceptionMode>,

    /// For pods without Istio, whose proxy is a container of their own: the pods get an init
    /// container that redirects their connections to it. Needs Pod Security level `privileged`,
    /// because that container needs `NET_ADMIN`. Either this or `interceptionMode`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect: Option<Redirect>,

    /// The component that changes the pods. `Webhook`: the project's webhook. `Policy`: the API
    /// server, with a MutatingAdmissionPolicy; needs Kubernetes 1.36 or newer, and cannot do
    /// `redirect`.
    #[serde(default)]
    pub via: Via,
}

impl Sidecars {
    /// The mode that pods with Istio's sidecar get. None with `redirect`, so the schema cannot have
    /// its default.
    pub fn interception_mode(&self) -> Option<InterceptionMode> {
        match self.redirect {
            Some(_) => None,
            None => Some(self.interception_mode.unwrap_or_default()),
        }
    }
}
