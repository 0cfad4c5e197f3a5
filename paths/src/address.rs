//! Addresses on a packet's way. A node that replaces a source chooses one of its own addresses by
//! its routes, which the API does not show: then the likely ones are listed.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use serde::Serialize;

/// The source of a packet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Address {
    /// The address, or the most likely one.
    pub address: IpAddr,
    /// The node whose address it is, if the node has chosen it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Other addresses that the node may have chosen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<IpAddr>,
}

impl Address {
    /// An address that is known.
    pub fn exact(address: IpAddr) -> Self {
        Self { address, node: None, others: Vec::new() }
    }

    /// An address that a node has chosen.
    pub(crate) fn of_node(node: &str, address: IpAddr, others: Vec<IpAddr>) -> Self {
        Self { address, node: Some(node.to_owned()), others }
    }

    /// Whether an observed address agrees with it.
    pub fn matches(&self, observed: IpAddr) -> bool {
        self.address == observed || self.others.contains(&observed)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.node {
            Some(node) if !self.others.is_empty() => {
                write!(f, "{} (or another address of node {node})", self.address)
            }
            _ => write!(f, "{}", self.address),
        }
    }
}

/// Source and destination of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flow {
    /// The source.
    pub source: Address,
    /// The destination.
    pub destination: SocketAddr,
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.source.address, self.destination)
    }
}
