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

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::families::{Families, FamilyFlags};

/// The range of ClusterIPs.
pub const SERVICE_RANGE: Range =
    Range { v4: (Ipv4Addr::new(10, 96, 0, 0), 16), v6: (v6(0xfd00, 0x96, 0, 0), 112) };
/// The range of all pod addresses.
pub const POD_RANGE: Range =
    Range { v4: (Ipv4Addr::new(10, 244, 0, 0), 16), v6: (v6(0xfd00, 0x244, 0, 0), 48) };
/// The range of external addresses. The router owns it and forwards each address to the nodes set
/// by `route`.
pub const EXTERNAL_RANGE: Range =
    Range { v4: (Ipv4Addr::new(192, 0, 2, 0), 24), v6: (v6(0x2001, 0xdb8, 0, 0), 64) };
/// The nodes' network.
pub const FABRIC: Range = Range { v4: (Ipv4Addr::new(10, 90, 0, 0), 24), v6: (v6(0xfd00, 0x90, 0, 0), 64) };
/// The network of `client`.
pub const CLIENT: Range =
    Range { v4: (Ipv4Addr::new(198, 51, 100, 0), 24), v6: (v6(0x2001, 0xdb8, 1, 0), 64) };
/// The network of `client-2`.
pub const CLIENT_2: Range =
    Range { v4: (Ipv4Addr::new(203, 0, 113, 0), 24), v6: (v6(0x2001, 0xdb8, 2, 0), 64) };

const MAX_NODES: usize = 60;
const fn v6(a: u16, b: u16, c: u16, d: u16) -> Ipv6Addr {
    Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)
}

/// An IPv4 network and its IPv6 counterpart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    v4: (Ipv4Addr, u8),
    v6: (Ipv6Addr, u8),
}

impl Range {
    /// The networks in CIDR notation, IPv4 first.
    pub fn cidrs(self, families: Families) -> Vec<String> {
        families.pick(format!("{}/{}", self.v4.0, self.v4.1), format!("{}/{}", self.v6.0, self.v6.1))
    }

    /// The `n`th address of each network, IPv4 first.
    pub fn hosts(self, n: u8, families: Families) -> Vec<IpAddr> {
        families.pick(self.host4(n).into(), self.host6(n).into())
    }

    /// The `n`th IPv4 address.
    pub fn host4(self, n: u8) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.v4.0.to_bits() + u32::from(n))
    }

    fn host6(self, n: u8) -> Ipv6Addr {
        Ipv6Addr::from_bits(self.v6.0.to_bits() + u128::from(n))
    }

    /// The `n`th addresses with their network's prefix length, as assigned to an interface.
    pub fn interface(self, n: u8, families: Families) -> Vec<String> {
        families.pick(format!("{}/{}", self.host4(n), self.v4.1), format!("{}/{}", self.host6(n), self.v6.1))
    }
}

/// A node's name: a DNS label that is not the name of another place in the lab.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NodeName(String);

/// Why a set of nodes is invalid.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum TopologyError {
    /// The name is not a DNS label.
    #[error(
        "node name {0:?} is not a DNS label: use at most 40 lower-case letters, digits and '-', starting with a letter"
    )]
    NotALabel(String),
    /// The name belongs to another place.
    #[error("node name {0:?} is the name of another place in the lab ({RESERVED:?}): choose another")]
    Reserved(String),
    /// The name occurs twice.
    #[error("node {0} is named twice")]
    Twice(NodeName),
    /// Too few or too many nodes.
    #[error("a lab has 1 to {MAX_NODES} nodes, not {0}")]
    Count(usize),
    /// An ingress node is not among the nodes.
    #[error("ingress node {0} is not among the nodes")]
    UnknownIngress(NodeName),
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

    /// The node's pod CIDRs, IPv4 first.
    pub fn pod_cidrs(&self, families: Families) -> Vec<String> {
        let v4 = Ipv4Addr::from_bits(POD_RANGE.v4.0.to_bits() + (u32::from(self.index) << 8));
        let v6 = Ipv6Addr::from_bits(POD_RANGE.v6.0.to_bits() + (u128::from(self.index) << 64));
        families.pick(format!("{v4}/24"), format!("{v6}/64"))
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
            nodes.push(Node { name, ingress, index });
        }
        Ok(Self { nodes, families })
    }

    /// Candidates for an extra machine next to the nodes: one for each address that no node has.
    pub(crate) fn beyond(&self, name: &NodeName) -> Result<impl Iterator<Item = Node>, TopologyError> {
        if self.node(name.as_str()).is_some() {
            return Err(TopologyError::Twice(name.clone()));
        }
        let places = (1_u8..).take(MAX_NODES).skip(self.nodes.len());
        Ok(places.map(|index| Node { name: name.clone(), ingress: false, index }))
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
