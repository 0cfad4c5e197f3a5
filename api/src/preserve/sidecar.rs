//! Pods whose sidecar shall pass on the client's IP to the application.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::selector;

/// How an Istio sidecar intercepts the traffic to its application. Of Istio's modes only this one keeps the address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum InterceptionMode {
    /// Transparent: the application sees the address of the peer.
    #[default]
    #[serde(rename = "TPROXY")]
    Tproxy,
}

impl InterceptionMode {
    /// As Istio spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tproxy => "TPROXY",
        }
    }
}

/// Who sets the annotation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Via {
    /// The webhook, which also warns when a pod is left alone.
    #[default]
    Webhook,
    /// The API server itself, by a MutatingAdmissionPolicy: no call to anything. Kubernetes 1.36 or newer.
    Policy,
}

/// Pods that get the annotation `sidecar.istio.io/interceptionMode` when they are created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sidecars {
    /// Selects the namespaces of the pods by their labels. It must not be empty: that would take the pods of every
    /// namespace.
    #[schemars(schema_with = "selector::schema::non_empty")]
    pub namespace_selector: LabelSelector,

    /// Selects the pods in these namespaces by their labels. Unset or empty: all of them.
    #[serde(default)]
    #[schemars(schema_with = "selector::schema::any")]
    pub pod_selector: LabelSelector,

    /// The value of the annotation. `TPROXY`: the application sees the address of the peer. The sidecar then needs
    /// `NET_ADMIN`, which the Pod Security level `restricted` does not admit.
    #[serde(default)]
    pub interception_mode: InterceptionMode,

    /// Who sets the annotation. `Webhook`: the project's webhook. `Policy`: the API server itself, by a
    /// MutatingAdmissionPolicy, on Kubernetes 1.36 or newer.
    #[serde(default)]
    pub via: Via,
}
