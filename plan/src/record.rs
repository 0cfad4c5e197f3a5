//! State that the operator stores as JSON in annotations, so that it survives a lost status or a
//! restart. Each record is written in the same request as the change it describes.

use isp_api::preserve::TrafficPolicy;
use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// On a Service: its object, its original state, and how often it was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and stays in annotations of Services"
)]
pub struct ServiceRecord {
    /// The name of the object that preserves it.
    pub object: String,
    /// The original `externalTrafficPolicy`.
    pub policy: TrafficPolicy,
    /// The manager that owned it by update. It gets the field back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_owner: Option<String>,
    /// The original `healthCheckNodePort`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check_node_port: Option<i32>,
    /// The original value and owner of the label, if it was taken from another manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<OriginalLabel>,
    /// The generation of the object that the counts below refer to.
    pub generation: i64,
    /// How often the label was set.
    #[serde(default)]
    pub labelled: u32,
    /// How often the policy was set to Local.
    #[serde(default)]
    pub localised: u32,
    /// How often the agents of mode Beside took it over.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub taken_over: u32,
    /// Whether kube-proxies may still skip it: the agents of mode Beside took it over, and it was
    /// not given back, or not long ago.
    #[serde(default, skip_serializing_if = "is_false")]
    pub skipped: bool,
    /// Whether the label was removed because no ingress node has an endpoint, so that every node
    /// shows the Service.
    #[serde(default, skip_serializing_if = "is_false")]
    pub opened: bool,
    /// Whether the policy fell back to Cluster because no ingress node has an endpoint.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fell_back: bool,
    /// Whether the object was deleted with `deletionPolicy: Retain`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub retained: bool,
}

/// A label that the operator replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OriginalLabel {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// The manager that owned it, if it can get it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// On the cluster's kube-proxy: its node affinity was extended. The original terms are derived from
/// the current ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AffinityRecord {
    /// The manager that owned the terms. It gets them back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// On a node that is being handed over to the agent, or back if it has no pool label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Handover {
    /// The pool.
    pub pool: String,
    /// When it started. Informational: it was written by another replica's clock, so nothing is
    /// decided by it.
    pub started: Timestamp,
    /// The previous revision, which the node can be rolled back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Whether the agent must be restarted, because another kube-proxy wrote rules on the node.
    #[serde(default, skip_serializing_if = "is_false")]
    pub restart: bool,
}

impl Handover {
    /// A handover that starts at this time.
    pub fn new(pool: impl Into<String>, started: Timestamp) -> Self {
        Self { pool: pool.into(), started, from: None, restart: false }
    }
}

/// On a node whose agent missed its deadline and was removed, or whose images could not be pulled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The pool.
    pub pool: String,
    /// The revision that failed. Other revisions are tried again.
    pub revision: String,
    /// What went wrong.
    pub reason: String,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !value
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use isp_api::names::ORIGINAL_ANNOTATION;
    use isp_api::view::depends_on_beside;

    use super::*;

    #[test]
    fn the_agents_read_from_the_record_whether_kube_proxies_skip_the_service() {
        for skipped in [false, true] {
            let record = ServiceRecord {
                object: "web".to_owned(),
                policy: TrafficPolicy::Cluster,
                policy_owner: None,
                health_check_node_port: None,
                label: None,
                generation: 1,
                labelled: 1,
                localised: 1,
                taken_over: 1,
                skipped,
                opened: false,
                fell_back: false,
                retained: false,
            };
            let text = serde_json::to_string(&record).unwrap();
            let annotations = [(ORIGINAL_ANNOTATION.to_owned(), text)].into();
            assert_eq!(depends_on_beside(&BTreeMap::new(), &annotations), skipped);
        }
    }
}
