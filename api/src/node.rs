//! IngressSourceNode: what the agent of one node acknowledges.
//!
//! There is one object per node with an agent, named like the node. The agent writes its status, on change only. The operator
//! waits for it before it takes a step that relies on the node, so an entry claims a thing only after it has happened.

#![allow(
    unreachable_pub,
    reason = "KubeSchema copies each struct, with its visibility, into the body of a function"
)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{preserve::Mode, view::View};

/// A node has nothing to configure: what its agent does follows from the node's labels and all IngressSourcePreserves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "sourcepreserve.io",
    version = "v1alpha1",
    kind = "IngressSourceNode",
    no_spec,
    shortname = "isn",
    category = "sourcepreserve",
    status = "IngressSourceNodeStatus",
    derive = "PartialEq",
    doc = "IngressSourceNode is the report of the agent on the node of the same name. The agent writes it; there is nothing to edit.",
    printcolumn = r#"{"name":"Pool","type":"string","jsonPath":".status.pool"}"#,
    printcolumn = r#"{"name":"Mode","type":"string","jsonPath":".status.mode"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Last Sync","type":"date","jsonPath":".status.lastSync"}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message","priority":1}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct IngressSourceNodeSpec {}

/// What the agent of the node does and has done. Written by the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngressSourceNodeStatus {
    /// The pool that the node belongs to.
    pub pool: String,

    /// The revision of the agent's DaemonSet that the agent was started by.
    #[serde(default)]
    pub revision: String,

    /// How the agent works.
    pub mode: Mode,

    /// One entry for each IngressSourcePreserve that the agent knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["object".into()]))]
    pub views: Vec<AcknowledgedView>,

    /// Whether the node's kube-proxy reads the API through the agent at present.
    pub proxy_connected: bool,

    /// When kube-proxy last received a changed view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_sync: Option<Time>,

    /// `Ready`, with what is wrong in its message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// What the node sees of the Services of one IngressSourcePreserve, and since which generation of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AcknowledgedView {
    /// The name of the IngressSourcePreserve.
    pub object: String,

    /// Its UID, which tells it from one of the same name that was deleted.
    pub uid: String,

    /// The generation of it that the agent works with.
    pub generation: i64,

    /// `Full`: everything, this is one of its ingress nodes. `ClusterOnly`: no external addresses. `Hidden`: nothing.
    pub view: View,

    /// Whether kube-proxy has received its Services anew since this view applies. Until then it may still work with
    /// what it saw before.
    pub relisted: bool,

    /// Whether the kernel's rules have followed, as far as kube-proxy's own health and metrics tell. Unset: they cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub programmed: Option<bool>,
}
