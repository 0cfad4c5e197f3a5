//! The nodes on which the cluster's kube-proxy never runs: Windows, Fargate, virtual kubelets, and
//! other nodes that its DaemonSet does not target. They cannot get an agent and need none.

use std::collections::BTreeSet;
use std::rc::Rc;

use isp_api::preserve::KubeProxyRef;
use k8s_openapi::api::core::v1::PodSpec;

use super::{original, terms};
use crate::cluster::{Cluster, DaemonSet, Key, Node};
use crate::observe::kube_proxy;
use crate::placement::{admits, is_virtual, tolerates};

/// Results by kube-proxy reference, cached because there are few references and many nodes.
pub(crate) struct LeftOut<'a> {
    cluster: &'a Cluster,
    nodes: &'a [(&'a str, &'a Node)],
    /// Pairs of DaemonSet and node with a running pod.
    running: BTreeSet<(&'a Key, &'a str)>,
    known: Vec<(Option<KubeProxyRef>, Rc<Vec<bool>>)>,
}

impl<'a> LeftOut<'a> {
    pub(crate) fn new(cluster: &'a Cluster, nodes: &'a [(&'a str, &'a Node)]) -> Self {
        let of_kube_proxy = cluster.pods.values().filter(|pod| pod.role.is_none());
        let running = of_kube_proxy.map(|pod| (&pod.daemon_set, pod.node.as_str())).collect();
        Self { cluster, nodes, running, known: Vec::new() }
    }

    /// For each node, whether that kube-proxy never runs there. All false if the kube-proxy is not
    /// found.
    pub(crate) fn of(&mut self, reference: Option<&KubeProxyRef>) -> Rc<Vec<bool>> {
        if let Some((_, known)) = self.known.iter().find(|(known, _)| known.as_ref() == reference) {
            return known.clone();
        }
        let found = kube_proxy(&self.cluster.daemon_sets, reference).ok();
        let pod = found.and_then(|(key, set)| Some((key, template(set)?)));
        let is_left_out = |(name, node): &(&str, &Node)| {
            pod.as_ref().is_some_and(|(key, pod)| self.lacks(key, pod, name, node))
        };
        let answer = Rc::new(self.nodes.iter().map(is_left_out).collect());
        self.known.push((reference.cloned(), Rc::clone(&answer)));
        answer
    }

    /// A node that already runs kube-proxy or an agent is never left out, unless it is virtual: a
    /// taint added later ends neither.
    fn lacks(&self, kube_proxy: &Key, pod: &PodSpec, name: &str, node: &Node) -> bool {
        let runs = self.running.contains(&(kube_proxy, name)) || node.pool.is_some();
        is_virtual(node) || !(runs || admits(pod, name, node) && tolerates(pod, node))
    }
}

/// kube-proxy's pod template without our node affinity requirement.
fn template(set: &DaemonSet) -> Option<PodSpec> {
    let mut pod = set.object.spec.template.spec.clone()?;
    let affinity = pod.affinity.as_mut().and_then(|affinity| affinity.node_affinity.as_mut());
    if let Some(affinity) = affinity {
        let terms = original(&terms(set));
        affinity.required_during_scheduling_ignored_during_execution = (!terms.is_empty())
            .then_some(k8s_openapi::api::core::v1::NodeSelector { node_selector_terms: terms });
    }
    Some(pod)
}
