//! Mode Beside: the DaemonSet has nothing of the cluster's kube-proxy, which keeps running as it
//! is. Its pods run on every node. Their one container changes the packet rules of the node's
//! network, and nothing else.

use std::collections::BTreeMap;

use isp_api::names::{AGENT_MODE_LABEL, AGENT_NAME, BESIDE_MODE, BESIDE_NAME, NAME_LABEL};
use isp_api::preserve::MaxUnavailable;
use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetSpec, DaemonSetUpdateStrategy, RollingUpdateDaemonSet};
use k8s_openapi::api::core::v1::{
    Affinity, Capabilities, Container, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
    PodSpec, PodTemplateSpec, SecurityContext, Toleration,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{confined, container};

/// Serves health checks and metrics. Another port than that of mode Filter: a node has an agent of
/// each mode while an object changes its mode.
const ADMIN_PORT: i32 = 10262;
/// The priority of a node's own programs; kube-proxy has it, too.
const PRIORITY: &str = "system-node-critical";
/// Labels and values of nodes on which no such program can run.
const UNFIT: [(&str, &str); 3] = [
    ("kubernetes.io/os", "windows"),
    ("type", "virtual-kubelet"),
    ("eks.amazonaws.com/compute-type", "fargate"),
];

/// Builds the DaemonSet of mode `Beside`.
pub fn beside_daemon_set(namespace: &str, image: &str, at_once: MaxUnavailable) -> DaemonSet {
    let labels: BTreeMap<String, String> = [(NAME_LABEL, AGENT_NAME), (AGENT_MODE_LABEL, BESIDE_MODE)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
    let rolling = RollingUpdateDaemonSet {
        max_unavailable: Some(at_once.into()),
        // Two agents would contend for the port and the tables.
        max_surge: Some(IntOrString::Int(0)),
    };
    DaemonSet {
        metadata: ObjectMeta {
            name: Some(BESIDE_NAME.to_owned()),
            namespace: Some(namespace.to_owned()),
            labels: Some(labels.clone()),
            ..ObjectMeta::default()
        },
        spec: DaemonSetSpec {
            selector: LabelSelector { match_labels: Some(labels.clone()), ..LabelSelector::default() },
            update_strategy: Some(DaemonSetUpdateStrategy {
                type_: Some("RollingUpdate".to_owned()),
                rolling_update: Some(rolling),
            }),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
                spec: Some(pod(image)),
            },
            ..DaemonSetSpec::default()
        },
        status: None,
    }
}

fn pod(image: &str) -> PodSpec {
    let arguments = ["beside".to_owned(), format!("--admin=127.0.0.1:{ADMIN_PORT}")];
    let arguments = arguments.into_iter().chain([format!("--metrics-port={ADMIN_PORT}")]).collect();
    let agent = Container {
        security_context: Some(changes_packet_rules()),
        ..container(image, None, arguments, ADMIN_PORT)
    };
    PodSpec {
        containers: vec![agent],
        affinity: Some(where_it_runs()),
        host_network: Some(true),
        priority_class_name: Some(PRIORITY.to_owned()),
        service_account_name: Some(AGENT_NAME.to_owned()),
        // Whatever the taints of a node: every kube-proxy skips the Services.
        tolerations: Some(vec![Toleration { operator: Some("Exists".to_owned()), ..Toleration::default() }]),
        ..PodSpec::default()
    }
}

/// Everywhere except on nodes that have no network of their own to change.
fn where_it_runs() -> Affinity {
    let not = |(key, value): (&str, &str)| NodeSelectorRequirement {
        key: key.to_owned(),
        operator: "NotIn".to_owned(),
        values: Some(vec![value.to_owned()]),
    };
    let term =
        NodeSelectorTerm { match_expressions: Some(UNFIT.map(not).into()), ..NodeSelectorTerm::default() };
    Affinity {
        node_affinity: Some(NodeAffinity {
            required_during_scheduling_ignored_during_execution: Some(NodeSelector {
                node_selector_terms: vec![term],
            }),
            ..NodeAffinity::default()
        }),
        ..Affinity::default()
    }
}

/// The agent's usual security context, with the one capability that nftables and conntrack need.
/// Container runtimes give added capabilities to user 0 only.
fn changes_packet_rules() -> SecurityContext {
    SecurityContext {
        capabilities: Some(Capabilities {
            add: Some(vec!["NET_ADMIN".to_owned()]),
            drop: Some(vec!["ALL".to_owned()]),
        }),
        run_as_non_root: None,
        run_as_user: Some(0),
        run_as_group: Some(0),
        ..confined()
    }
}

#[cfg(test)]
mod tests;
