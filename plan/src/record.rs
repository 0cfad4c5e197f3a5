//! What is written down on objects, as JSON in annotations, so that nothing is lost with a status or a process. Each
//! is written in the same request as the change that it tells about.

use isp_api::preserve::TrafficPolicy;
use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// On a Service: whose it is, what it was like, and how often it had to be changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceRecord {
    /// The name of the object that preserves it.
    pub object: String,
    /// `externalTrafficPolicy` as it was.
    pub policy: TrafficPolicy,
    /// Who owned it without having declared it, and owns it again in the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_owner: Option<String>,
    /// `healthCheckNodePort` as it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check_node_port: Option<i32>,
    /// The value that the label had, and who owned that, where it was taken from somebody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<OriginalLabel>,
    /// The generation of the object that the counts below are about.
    pub generation: i64,
    /// How often the label was set.
    #[serde(default)]
    pub labelled: u32,
    /// How often the policy was set to Local.
    #[serde(default)]
    pub localised: u32,
    /// Whether the label was taken off, so that every node shows it, because no ingress node has an endpoint.
    #[serde(default, skip_serializing_if = "is_false")]
    pub opened: bool,
    /// Whether the policy is back to Cluster because no ingress node has an endpoint.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fell_back: bool,
    /// Whether the object was deleted with `deletionPolicy: Retain`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub retained: bool,
}

/// A label that was there before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OriginalLabel {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Who owned it, if anybody that can be given it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// On the cluster's kube-proxy: that its node affinity was extended. The terms that it had follow from those that it has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AffinityRecord {
    /// Who owned them without having declared them, and owns them again in the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// On a node that is going over to the agent, or back. Which of the two, the node's pool label tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Handover {
    /// The pool.
    pub pool: String,
    /// When it began, for people to read. Nothing is decided by it: the clock was that of the operator who wrote it.
    pub started: Timestamp,
    /// The revision that the node comes from, to which it can go back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Whether the agent has to be started anew, because another kube-proxy wrote rules on the node.
    #[serde(default, skip_serializing_if = "is_false")]
    pub restart: bool,
}

impl Handover {
    /// One that begins now.
    pub fn new(pool: impl Into<String>, started: Timestamp) -> Self {
        Self { pool: pool.into(), started, from: None, restart: false }
    }
}

/// On a node whose agent missed its deadline and was taken away again, or whose images could not be pulled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The pool.
    pub pool: String,
    /// The revision that failed. Another is worth another try.
    pub revision: String,
    /// What was wrong.
    pub reason: String,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !value
}
