//! The names and addresses in a lab. Pure: known before anything starts.
//!
//! Each lab has its own network namespaces, so all labs use the same addresses. The figure shows
//! IPv4. Each network also has an IPv6 range, for dual-stack and IPv6-only labs.
//!
//! ```text
//!   client 198.51.100.10 ──┐                       ┌── edge-1 10.90.0.11  pods 10.244.1.0/24
//!                        router ──── fabric ───────┼── work-1 10.90.0.12  pods 10.244.2.0/24
//!   client-2 203.0.113.10 ─┘  10.90.0.2   │        └── …
//!      external range 192.0.2.0/24        └── control plane 10.90.0.1
//! ```

mod families;
mod kube_proxy;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::{Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::families::{Families, FamilyFlags};
pub use self::kube_proxy::{KubeProxy, KubeProxyOn, NotKubeProxy};

/// The range of ClusterIPs.
pub const SERVICE_RANGE: Range = Range::new([10, 96, 0, 0], 16, [0xfd00, 0x96, 0, 0], 112);
/// The range of all pod addresses.
pub const POD_RANGE: Range = Range::new([10, 244, 0, 0], 16, [0xfd00, 0x244, 0, 0], 48);
/// The range of external addresses. The router owns it and forwards each address to the nodes set
/// by `route`.
pub const EXTERNAL_RANGE: Range = Range::new([192, 0, 2, 0], 24, [0x2001, 0xdb8, 0, 0], 64);
/// The nodes' network.
pub const FABRIC: Range = Range::new([10, 90, 0, 0], 24, [0xfd00, 0x90, 0, 0], 64);
/// The network of `client`.
pub const CLIENT: Range = Range::new([198, 51, 100, 0], 24, [0x2001, 0xdb8, 1, 0], 64);
/// The network of `client-2`.
pub const CLIENT_2: Range = Range::new([203, 0, 113, 0], 24, [0x2001, 0xdb8, 2, 0], 64);

const MAX_NODES: usize = 60;

/// An IPv4 network and its IPv6 counterpart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    v4: Ipv4Net,
    v6: Ipv6Net,
}

impl Range {
    const fn new(v4: [u8; 4], prefix4: u8, v6: [u16; 4], prefix6: u8) -> Self {
        Self {
            v4: Ipv4Net::new_assert(Ipv4Addr::from_octets(v4), prefix4),
            v6: Ipv6Net::new_assert(Ipv6Addr::new(v6[0], v6[1], v6[2], v6[3], 0, 0, 0, 0), prefix6),
        }
    }

    /// The networks in CIDR notation, IPv4 first.
    pub fn cidrs(self, families: Families) -> Vec<String> {
        families.pick(self.v4.to_string(), self.v6.to_string())
    }

    /// The `n`th address of each network, IPv4 first.
    pub fn hosts(self, n: u8, families: Families) -> Vec<IpAddr> {
        families.pick(self.host4(n).into(), self.host6(n).into())
    }

    /// The `n`th IPv4 address.
    pub fn host4(self, n: u8) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.v4.addr().to_bits() + u32::from(n))
    }

    fn host6(self, n: u8) -> Ipv6Addr {
        Ipv6Addr::from_bits(self.v6.addr().to_bits() + u128::from(n))
    }

    /// The `n`th addresses with their network's prefix length, as assigned to an interface.
    pub fn interface(self, n: u8, families: Families) -> Vec<String> {
        let (v4, v6) = (self.v4.prefix_len(), self.v6.prefix_len());
        families.pick(format!("{}/{v4}", self.host4(n)), format!("{}/{v6}", self.host6(n)))
    }
}

/// A node's name: a DNS label that is not the name of another place in the lab.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NodeName(String);

/// Why a set of nodes is invalid.
#[derive(Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum TopologyError {
    #[error(
        "node name {0:?} is not a DNS label: use at most 40 lower-case letters, digits and '-', starting with a letter"
    )]
    NotALabel(String),
    #[error("node name {0:?} is reserved ({RESERVED:?}): choose another")]
    Reserved(String),
    #[error("node {0} is listed twice")]
    Twice(NodeName),
    #[error("a lab has 1 to {MAX_NODES} nodes, not {0}")]
    Count(usize),
    #[error("ingress node {0} is not among the nodes")]
    UnknownIngress(NodeName),
    #[error("{0:?}, which was to run kube-proxy in another way, is not among the nodes")]
    UnknownKubeProxy(String),
    #[error("no node runs kube-proxy, so CoreDNS cannot reach the API server: let one node run it")]
    NoKubeProxy,
}

const RESERVED: [&str; 4] = ["client", "client-2", "router", "control-plane"];

impl TryFrom<String> for NodeName {
    type Error = TopologyError;

    fn try_from(name: String) -> Result<Self, TopologyError> {
        let label = name.starts_with(|c: char| c.is_ascii_lowercase())
            && !name.ends_with('-')
            && name.len() <= 40
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if !label {
            return Err(TopologyError::NotALabel(name));
        }
        if RESERVED.contains(&name.as_str()) {
            return Err(TopologyError::Reserved(name));
        }
        Ok(Self(name))
    }
}

impl From<NodeName> for String {
    fn from(name: NodeName) -> Self {
        name.0
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl NodeName {
    /// The name as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The default for ingress nodes: names that start with `edge`.
    fn looks_like_ingress(&self) -> bool {
        self.0.starts_with("edge")
    }
}

/// One node and its addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// The node's name.
    pub name: NodeName,
    /// Whether the node has the label `node-role.kubernetes.io/ingress`.
    pub ingress: bool,
    /// How the node runs kube-proxy.
    pub kube_proxy: KubeProxy,
    index: u8,
}

impl Node {
    /// The node's addresses on the fabric, IPv4 first.
    pub fn addresses(&self, families: Families) -> Vec<IpAddr> {
        FABRIC.hosts(10 + self.index, families)
    }

    /// The node's addresses with the fabric's prefix length.
    pub fn interface(&self, families: Families) -> Vec<String> {
        FABRIC.interface(10 + self.index, families)
    }

    /// The node's IPv4 address. Meaningful only if the lab has IPv4.
    pub fn address(&self) -> Ipv4Addr {
        FABRIC.host4(10 + self.index)
    }

    /// The node's pod CIDRs. The first address of each is the node's own.
    pub fn pods(&self) -> Range {
        Range::new([10, 244, self.index, 0], 24, [0xfd00, 0x244, 0, self.index.into()], 64)
    }

    /// The name of the fabric's end of the node's veth pair.
    pub fn cable(&self) -> String {
        format!("node{}", self.index)
    }
}

/// All nodes of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    /// The nodes, in the given order.
    pub nodes: Vec<Node>,
    /// IPv4, IPv6 or both.
    pub families: Families,
}

impl Topology {
    /// Validates the names and assigns the addresses. With `ingress: None`, nodes named `edge…` are
    /// ingress nodes.
    pub fn new(
        names: Vec<NodeName>,
        ingress: Option<&[NodeName]>,
        families: Families,
    ) -> Result<Self, TopologyError> {
        if names.is_empty() || names.len() > MAX_NODES {
            return Err(TopologyError::Count(names.len()));
        }
        if let Some(stranger) = ingress.unwrap_or_default().iter().find(|name| !names.contains(name)) {
            return Err(TopologyError::UnknownIngress(stranger.clone()));
        }
        let mut nodes: Vec<Node> = Vec::with_capacity(names.len());
        for (name, index) in names.into_iter().zip(1_u8..) {
            if nodes.iter().any(|node| node.name == name) {
                return Err(TopologyError::Twice(name));
            }
            let ingress = ingress.map_or_else(|| name.looks_like_ingress(), |list| list.contains(&name));
            nodes.push(Node { name, ingress, kube_proxy: KubeProxy::default(), index });
        }
        Ok(Self { nodes, families })
    }

    /// Lets some nodes run kube-proxy in another way than the DaemonSet's.
    pub fn with_kube_proxy(mut self, others: &[KubeProxyOn]) -> Result<Self, TopologyError> {
        for KubeProxyOn(name, kube_proxy) in others {
            let node = self.nodes.iter_mut().find(|node| node.name.as_str() == name);
            node.ok_or_else(|| TopologyError::UnknownKubeProxy(name.clone()))?.kube_proxy = *kube_proxy;
        }
        if self.nodes.iter().all(|node| node.kube_proxy == KubeProxy::None) {
            return Err(TopologyError::NoKubeProxy);
        }
        Ok(self)
    }

    /// The names of the nodes that run kube-proxy in one of these ways.
    pub(crate) fn kube_proxy_nodes(&self, ways: &[KubeProxy]) -> Vec<&str> {
        let nodes = self.nodes.iter().filter(|node| ways.contains(&node.kube_proxy));
        nodes.map(|node| node.name.as_str()).collect()
    }

    /// Candidates for an extra machine next to the nodes: one for each address that no node has.
    pub(crate) fn beyond(&self, name: &NodeName) -> Result<impl Iterator<Item = Node>, TopologyError> {
        if self.node(name.as_str()).is_some() {
            return Err(TopologyError::Twice(name.clone()));
        }
        let places = (1_u8..).take(MAX_NODES).skip(self.nodes.len());
        Ok(places.map(|index| Node {
            name: name.clone(),
            ingress: false,
            kube_proxy: KubeProxy::None,
            index,
        }))
    }

    /// The node with that name.
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.name.as_str() == name)
    }
}

/// The API server's addresses on the fabric.
pub fn control_plane_addresses(families: Families) -> Vec<IpAddr> {
    FABRIC.hosts(1, families)
}

/// The API server's URL inside the lab, with the address of the first family.
pub(crate) fn server(families: Families, port: u16) -> String {
    format!("https://{}", SocketAddr::new(control_plane_addresses(families)[0], port))
}

/// The ClusterIPs of the DNS Service.
pub fn dns_addresses(families: Families) -> Vec<IpAddr> {
    SERVICE_RANGE.hosts(10, families)
}

#[cfg(test)]
mod tests;
