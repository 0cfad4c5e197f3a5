//! The settings of the cluster's kube-proxy that decide how a node treats Services.

use ipnet::IpNet;
use isp_dataplane::model::{LocalPods, Node as NodeModel, NodePortAddresses};
use isp_dataplane::nft::InterfacePattern;

use crate::cluster::Node;

/// The settings. The default ones are kube-proxy's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KubeProxy {
    /// `mode`.
    pub mode: ProxyMode,
    /// `detectLocalMode`.
    pub detect_local: DetectLocal,
    /// `clusterCIDR`.
    pub cluster_cidrs: Vec<IpNet>,
    /// `masqueradeAll` of the mode.
    pub masquerade_all: bool,
    /// `nodePortAddresses`, as written.
    pub node_port_addresses: Vec<String>,
}

/// How kube-proxy programs the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyMode {
    /// iptables, the default.
    #[default]
    Iptables,
    /// nftables.
    Nftables,
    /// ipvs.
    Ipvs,
}

impl ProxyMode {
    /// The mode that a configuration names. Empty is the default; kube-proxy refuses other words.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "" | "iptables" => Some(Self::Iptables),
            "nftables" => Some(Self::Nftables),
            "ipvs" => Some(Self::Ipvs),
            _ => None,
        }
    }
}

/// How kube-proxy recognizes the pods of its node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DetectLocal {
    /// By `clusterCIDR`.
    #[default]
    ClusterCidr,
    /// By the Node's podCIDRs.
    NodeCidr,
    /// By the name of their bridge.
    Bridge(String),
    /// By the prefix of the names of their interfaces.
    InterfacePrefix(String),
}

impl KubeProxy {
    /// The node as the rules of its kube-proxy see it.
    pub(crate) fn node(&self, node: &Node) -> NodeModel {
        let of_ranges = |ranges: &[IpNet]| {
            if ranges.is_empty() { LocalPods::Unknown } else { LocalPods::Sources(ranges.to_vec()) }
        };
        let local_pods = match &self.detect_local {
            DetectLocal::ClusterCidr => of_ranges(&self.cluster_cidrs),
            DetectLocal::NodeCidr => of_ranges(&node.pod_cidrs),
            DetectLocal::Bridge(name) => LocalPods::Interface(InterfacePattern::Name(name.clone())),
            DetectLocal::InterfacePrefix(prefix) => {
                LocalPods::Interface(InterfacePattern::Prefix(prefix.clone()))
            }
        };
        let mut model = node.model.clone();
        model.local_pods = local_pods;
        model.masquerade_all = self.masquerade_all;
        model.node_port_addresses = self.accepting();
        // NodePorts answer on the bridge of the pods, too, unless only the primary address accepts.
        model.addresses.extend(node.bridges());
        model
    }

    fn accepting(&self) -> NodePortAddresses {
        let words = &self.node_port_addresses;
        let is_primary = if words.is_empty() {
            self.mode == ProxyMode::Nftables
        } else {
            words.iter().any(|word| word == "primary")
        };
        if is_primary {
            return NodePortAddresses::Primary;
        }
        NodePortAddresses::Within(words.iter().filter_map(|word| word.parse().ok()).collect())
    }
}
