//! Which program serves the Services of a cluster, as far as its objects show. `fit` judges it.

use std::fmt;

use isp_plan::Key;
use isp_plan::cluster::DaemonSet;
use isp_plan::observe::{NoKubeProxy, kube_proxy};

use crate::doctor::cluster::Cluster;
use crate::doctor::network::{Network, NetworkAgent};

/// The program that serves Services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Proxy {
    /// kube-proxy, as pods of a DaemonSet.
    DaemonSet(Key),
    /// kube-proxy, as pods of several DaemonSets.
    DaemonSets(Vec<Key>),
    /// kube-proxy, as static pods.
    StaticPods(usize),
    /// kube-proxy, inside k3s.
    K3s,
    /// A network instead of kube-proxy. `is_sure`: its settings say so, and not only the absence of
    /// a kube-proxy.
    Network {
        network: Network,
        is_sure: bool,
    },
    NotRecognized,
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DaemonSet(key) => write!(f, "kube-proxy (DaemonSet {key})"),
            Self::DaemonSets(keys) => {
                let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
                write!(f, "kube-proxy (DaemonSets {})", keys.join(", "))
            }
            Self::StaticPods(number) => write!(f, "kube-proxy ({number} static pods)"),
            Self::K3s => f.write_str("kube-proxy (inside k3s)"),
            Self::Network { network, is_sure: true } => {
                write!(f, "{} instead of kube-proxy", network.as_str())
            }
            Self::Network { network, is_sure: false } => {
                write!(f, "{}, as it seems: there is no kube-proxy", network.as_str())
            }
            Self::NotRecognized => f.write_str("not recognized"),
        }
    }
}

impl Proxy {
    /// The settings of a network come before the absence of a kube-proxy, which proves little.
    pub(super) fn of(cluster: &Cluster) -> Self {
        match kube_proxy(&cluster.daemon_sets, None) {
            Ok((key, set)) if !is_idle(set) => return Self::DaemonSet(key.clone()),
            Err(NoKubeProxy::Ambiguous(keys)) => return Self::DaemonSets(keys),
            _ => {}
        }
        let static_pods = cluster.pods.values().filter(|pod| pod.static_kube_proxy).count();
        if static_pods > 0 {
            return Self::StaticPods(static_pods);
        }
        let replacing = |agent: &&NetworkAgent| match agent.network {
            Network::Cilium => cluster.cilium.as_ref().is_some_and(|settings| settings.replaces_kube_proxy),
            _ => agent.serves_by_ebpf || agent.serves_by_flag,
        };
        if let Some(agent) = cluster.networks.values().find(replacing) {
            return Self::Network { network: agent.network, is_sure: true };
        }
        if cluster.nodes.values().any(|node| node.system.kubelet.contains("+k3s")) {
            return Self::K3s;
        }
        let able = |agent: &&NetworkAgent| match agent.network {
            // Its settings say that it does not.
            Network::Cilium => cluster.cilium.is_none(),
            Network::Antrea | Network::Calico | Network::OvnKubernetes => true,
            _ => false,
        };
        match cluster.networks.values().find(able) {
            Some(agent) => Self::Network { network: agent.network, is_sure: false },
            None => Self::NotRecognized,
        }
    }
}

/// Whether no node is to run it. Calico's manual turns kube-proxy off by a node selector.
pub(super) fn is_idle(set: &DaemonSet) -> bool {
    let status = set.object.status.as_ref();
    // One that the operator has changed is kept off nodes with an agent. A status without a
    // generation has never been written.
    set.record.is_none()
        && status.is_some_and(|status| {
            status.desired_number_scheduled == 0 && status.observed_generation.is_some()
        })
}
