//! The settings of a node that both proxies get, each in its own words.

use isp_dataplane::model::{LocalPods, Node, NodePortAddresses};
use isp_dataplane::nft::{Family, InterfacePattern};
use serde_json::{Value, json};

use crate::addresses::{FAMILIES, NODE, PRIMARY, SECOND, ZONE, only, outside, pod, range};
use crate::services::prefix;

/// How traffic of the node's own pods is recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Local {
    /// By the Node's pod CIDRs.
    NodeRange,
    /// By the range of all pods.
    ClusterRange,
    /// By one interface.
    Bridge,
    /// By the beginning of the interface's name.
    Prefix,
    /// Not at all.
    Unknown,
}

/// The settings of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) local: Local,
    pub(crate) masquerade_all: bool,
    pub(crate) node_ports: NodePorts,
}

/// Which addresses of the node accept NodePort traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodePorts {
    /// The primary ones.
    Primary,
    /// The second one over IPv4; all over IPv6, for which there is no range.
    Second,
    /// All.
    All,
}

impl Settings {
    /// As kubeadm has them, but with NodePort traffic on all addresses.
    pub(crate) const NODE_PORTS_ON_ALL: Self =
        Self { local: Local::ClusterRange, masquerade_all: false, node_ports: NodePorts::All };

    /// The settings of a round. They follow from the seed so that a few rounds in a row have all of
    /// them.
    pub(crate) fn of_round(seed: u64) -> Self {
        Self {
            local: match seed % 5 {
                0 => Local::NodeRange,
                1 => Local::ClusterRange,
                2 => Local::Bridge,
                3 => Local::Unknown,
                _ => Local::Prefix,
            },
            masquerade_all: seed % 4 == 3,
            node_ports: if seed % 3 == 2 { NodePorts::Second } else { NodePorts::Primary },
        }
    }

    pub(crate) fn has_pod_ranges(self) -> bool {
        self.local != Local::Unknown
    }

    /// kube-proxy's configuration.
    pub(crate) fn of_kube_proxy(self, kubeconfig: &str) -> Value {
        let (mode, bridge, prefix) = match self.local {
            Local::NodeRange => ("NodeCIDR", "", ""),
            Local::ClusterRange | Local::Unknown => ("ClusterCIDR", "", ""),
            Local::Bridge => ("BridgeInterface", "cni0", ""),
            Local::Prefix => ("InterfaceNamePrefix", "", "cni"),
        };
        let ranges =
            if self.local == Local::ClusterRange { cluster_ranges().join(",") } else { String::new() };
        json!({
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "hostnameOverride": NODE,
            "clientConnection": {"kubeconfig": kubeconfig},
            "mode": "nftables",
            "clusterCIDR": ranges,
            "detectLocalMode": mode,
            "detectLocal": {"bridgeInterface": bridge, "interfaceNamePrefix": prefix},
            "nodePortAddresses": self.node_port_ranges(),
            "nftables": {"masqueradeAll": self.masquerade_all},
            // A network namespace cannot change the machine's limits.
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        })
    }

    /// The agent's command line.
    pub(crate) fn of_agent(self) -> Vec<String> {
        let mut arguments = Vec::new();
        match self.local {
            Local::NodeRange | Local::Unknown => {}
            Local::ClusterRange => arguments.push(format!("--pod-cidrs={}", cluster_ranges().join(","))),
            Local::Bridge => arguments.push("--pod-interface=cni0".to_owned()),
            Local::Prefix => arguments.push("--pod-interface=cni*".to_owned()),
        }
        if self.masquerade_all {
            arguments.push("--masquerade-all".to_owned());
        }
        let ranges = self.node_port_ranges();
        if !ranges.is_empty() {
            arguments.push(format!("--node-port-addresses={}", ranges.join(",")));
        }
        arguments
    }

    /// The node, as the data plane sees it.
    pub(crate) fn node(self) -> Node {
        let ranges = |ranges: &[String]| ranges.iter().map(|range| prefix(range)).collect();
        Node {
            name: NODE.into(),
            zone: Some(ZONE.into()),
            addresses: FAMILIES.map(|family| [PRIMARY, SECOND].map(|last| outside(family, last))).concat(),
            local_pods: match self.local {
                Local::NodeRange => {
                    LocalPods::Sources(ranges(&FAMILIES.map(|family| range(pod(family, 1, 0), 24, 64))))
                }
                Local::ClusterRange => LocalPods::Sources(ranges(&cluster_ranges())),
                Local::Bridge => LocalPods::Interface(InterfacePattern::Name("cni0".to_owned())),
                Local::Prefix => LocalPods::Interface(InterfacePattern::Prefix("cni".to_owned())),
                Local::Unknown => LocalPods::Unknown,
            },
            node_port_addresses: match self.node_ports {
                NodePorts::Primary => NodePortAddresses::Primary,
                _ => NodePortAddresses::Within(ranges(&self.node_port_ranges())),
            },
            masquerade_all: self.masquerade_all,
        }
    }

    fn node_port_ranges(self) -> Vec<String> {
        match self.node_ports {
            NodePorts::Primary => Vec::new(),
            NodePorts::Second => vec![only(outside(Family::Ip, SECOND))],
            NodePorts::All => vec!["0.0.0.0/0".to_owned(), "::/0".to_owned()],
        }
    }
}

fn cluster_ranges() -> [String; 2] {
    FAMILIES.map(|family| range(pod(family, 0, 0), 16, 48))
}
