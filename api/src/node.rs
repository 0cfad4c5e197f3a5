//! IngressSourceNode: the acknowledgement of one node's agent.
//!
//! Each node with an agent has one object of the same name; the agent of mode Beside has one of its
//! own, so that a node can have an agent of each mode while an object changes its mode. The agent
//! writes its status when it changes. The operator waits for it before it takes a step that depends
//! on the node, so the agent reports something only after it has happened.

#![allow(
    unreachable_pub,
    reason = "KubeSchema copies each struct, with its visibility, into the body of a function"
)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::view::View;

/// Empty: the agent's work follows from the node's labels and all IngressSourcePreserves.
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
    doc = "IngressSourceNode is the report of a node's agent. In mode Filter it has the name of the node, in mode Beside the name of the node and \
           .beside. Only the agent writes it.",
    printcolumn = r#"{"name":"Pool","type":"string","jsonPath":".status.pool"}"#,
    printcolumn = r#"{"name":"Mode","type":"string","jsonPath":".status.mode"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Last Sync","type":"date","jsonPath":".status.lastSync"}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message","priority":1}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct IngressSourceNodeSpec {}

/// The state of the node's agent. Written by the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngressSourceNodeStatus {
    /// The pool that the node belongs to.
    pub pool: String,

    /// The revision of the agent's DaemonSet that started the agent.
    #[serde(default)]
    pub revision: String,

    /// The agent's mode.
    pub mode: AgentMode,

    /// One entry for each IngressSourcePreserve that the agent knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["object".into()]))]
    pub views: Vec<AcknowledgedView>,

    /// Whether the node's proxy works through the agent. Mode Filter: kube-proxy currently reads
    /// the API through the agent.
    pub active: bool,

    /// Mode Beside: the number of Services that the agent serves on this node, whether or not an
    /// object lists them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<u32>,

    /// When the node's proxy last received a changed view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_sync: Option<Time>,

    /// `Ready`; its message says what is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// How an agent works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AgentMode {
    /// It narrows what the node's stock kube-proxy sees.
    #[default]
    Filter,
    /// It serves the preserved Services itself, beside kube-proxy.
    Beside,
}

impl AgentMode {
    /// The name of the IngressSourceNode in which an agent of this mode reports for a node.
    pub fn report_name(self, node: &str) -> String {
        match self {
            Self::Filter => node.to_owned(),
            Self::Beside => format!("{node}{BESIDE_SUFFIX}"),
        }
    }

    /// The node that a report of this mode is about, by the name of the report. None if no agent of
    /// this mode writes a report of that name.
    pub fn node_of(self, report: &str) -> Option<&str> {
        match self {
            Self::Filter => Some(report),
            Self::Beside => report.strip_suffix(BESIDE_SUFFIX),
        }
    }
}

/// The end of the name of a report of mode Beside.
pub const BESIDE_SUFFIX: &str = ".beside";

/// The node's view of the Services of one IngressSourcePreserve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct AcknowledgedView {
    /// The name of the IngressSourcePreserve.
    pub object: String,

    /// Its UID, which distinguishes it from a deleted object of the same name.
    pub uid: String,

    /// The generation of the object that the agent applies.
    pub generation: i64,

    /// What the node's proxy sees of the Services. `Full`: everything, because the node is an
    /// ingress node. `ClusterOnly`: no external IPs. `Hidden`: nothing.
    pub view: View,

    /// Whether the node's proxy has received the Services according to this view. Until then it may
    /// still use the previous view. Mode Filter: kube-proxy has listed the Services again.
    pub received: bool,

    /// Mode Beside: the Services of the object that the agent serves on this node, as
    /// namespace/name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub services: Vec<String>,

    /// Whether the kernel's rules match the view. Unset: unknown, because kube-proxy's health and
    /// metrics cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub programmed: Option<bool>,
}
