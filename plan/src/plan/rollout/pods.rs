//! The pods of agents, of image pullers and of the cluster's kube-proxies, by node.

use std::collections::BTreeMap;

use isp_api::names::AGENT_NAME;

use super::super::snapshot::Snapshot;
use crate::cluster::{Key, Pod, PodRole};
use crate::observe::role;

pub(in crate::plan) struct Pods<'a>(BTreeMap<&'a str, Vec<&'a Pod>>);

impl<'a> Pods<'a> {
    /// Keeps the pods of the cluster's kube-proxies and of the operator's DaemonSets. Pods in other
    /// namespaces may carry the same labels and are ignored.
    pub(super) fn new(snapshot: &Snapshot<'a>) -> Self {
        let mut by_node: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
        for pod in snapshot.cluster.pods.values() {
            let ours = pod.role.is_some() && snapshot.is_home(&pod.daemon_set.namespace);
            if ours || snapshot.kube_proxies.contains_key(&pod.daemon_set) {
                by_node.entry(&pod.node).or_default().push(pod);
            }
        }
        Self(by_node)
    }

    fn of(&self, node: &str) -> impl Iterator<Item = &'a Pod> {
        self.0.get(node).into_iter().flatten().copied()
    }

    /// The agent's pod on the node, optionally of one pool and revision.
    pub(super) fn agent(&self, node: &str, wanted: Option<(&str, &str)>) -> Option<&'a Pod> {
        self.of(node).find(|pod| match (&pod.role, wanted) {
            (Some(PodRole::Agent { pool, revision }), Some(wanted)) => {
                (pool.as_str(), revision.as_str()) == wanted
            }
            (Some(PodRole::Agent { .. }), None) => true,
            _ => false,
        })
    }

    /// The pod of the agent of mode Beside on the node.
    pub(in crate::plan) fn beside(&self, node: &str, daemon_set: &Key) -> Option<&'a Pod> {
        self.of(node).find(|pod| pod.role == Some(PodRole::Beside) && pod.daemon_set == *daemon_set)
    }

    /// The pod that pulls the images of a revision on the node.
    pub(super) fn images(&self, node: &str, wanted: &str) -> Option<&'a Pod> {
        self.of(node)
            .find(|pod| matches!(&pod.role, Some(PodRole::Images { revision }) if revision == wanted))
    }

    /// Whether a pod of this kube-proxy DaemonSet is on the node.
    pub(super) fn has_kube_proxy(&self, node: &str, daemon_set: &Key) -> bool {
        self.of(node).any(|pod| pod.role.is_none() && pod.daemon_set == *daemon_set)
    }

    /// Whether the cluster's kube-proxy is ready on the node.
    pub(super) fn kube_proxy_is_ready(&self, node: &str) -> bool {
        self.of(node).any(|pod| pod.role.is_none() && pod.ready)
    }

    /// Whether the DaemonSet of this pool and revision exists.
    #[allow(clippy::unused_self, reason = "it is asked together with the pods")]
    pub(super) fn has_daemon_set(&self, snapshot: &Snapshot<'_>, pool: &str, revision: &str) -> bool {
        let wanted = Some(PodRole::Agent { pool: pool.to_owned(), revision: revision.to_owned() });
        let name = format!("{AGENT_NAME}-{pool}-{revision}");
        snapshot
            .made
            .iter()
            .copied()
            .any(|(key, set)| key.name == name && role(&set.object.metadata) == wanted)
    }
}
