//! The question: who connects to which address.

use std::net::{IpAddr, SocketAddr};

use isp_dataplane::nft::Protocol;
use isp_plan::Key;
use thiserror::Error;

/// Where a packet comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A client outside the cluster.
    Outside(IpAddr),
    /// A pod.
    Pod(Key),
    /// A process on the host network of a node.
    Node(String),
}

/// The first packet of a connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    /// Where it comes from.
    pub source: Source,
    /// The address and port that the client connects to.
    pub destination: SocketAddr,
    /// The protocol.
    pub protocol: Protocol,
    /// The node at which traffic from outside arrives. None: every node that the address may lead
    /// to.
    pub entry: Option<String>,
}

/// A request about something that the cluster does not have.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "the messages explain each variant")]
pub enum Impossible {
    #[error("there is no pod {0}, or it has ended; `kubectl get pods -A` lists them")]
    NoPod(Key),
    #[error("pod {0} is not on a known node yet; `kubectl get pod -o wide` shows its node")]
    NotScheduled(Key),
    #[error("there is no node {0:?}; `kubectl get nodes` lists them")]
    NoNode(String),
    #[error("there is no Service {0}; `kubectl get services -A` lists them")]
    NoService(Key),
    #[error(
        "{source_name} has no {family} address, and {destination} is one: use an address of the same family"
    )]
    OtherFamily { source_name: String, family: &'static str, destination: IpAddr },
    #[error("there are more than {0} ways: name the node at which the traffic arrives")]
    TooMany(usize),
    #[error("{0} is a loopback, multicast or unspecified address, which means another host on each node")]
    NotRouted(IpAddr),
}

/// The name of an address family.
pub(crate) fn family_name(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}
