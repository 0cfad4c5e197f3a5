//! Who connects: from where, and with which addresses.

use std::net::IpAddr;

use isp_dataplane::nft::Family;

use crate::addresses::{CROWD, PODS, PRIMARY, of_node, outside, pod};

/// A client, or a group of clients that differ only in their address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Client {
    /// Machines outside that source ranges often allow.
    Partner,
    /// Machines outside that source ranges rarely allow.
    Stranger,
    /// Pods of this node that are no endpoints.
    Pod,
    /// A pod of this node that is an endpoint.
    Endpoint,
    /// Pods of another node.
    Elsewhere,
    /// The host network of this node.
    Node,
}

impl Client {
    pub(crate) const ALL: [Self; 6] =
        [Self::Partner, Self::Stranger, Self::Pod, Self::Endpoint, Self::Elsewhere, Self::Node];

    /// The namespace.
    pub(crate) fn place(self) -> &'static str {
        match self {
            Self::Partner | Self::Stranger => "outside",
            Self::Pod => "pods",
            Self::Endpoint => "pod-5",
            Self::Elsewhere => "elsewhere",
            Self::Node => "node",
        }
    }

    /// The node's interface that its packets come in by.
    pub(crate) fn interface(self) -> Option<&'static str> {
        match self {
            Self::Partner | Self::Stranger => Some("eth0"),
            Self::Pod => Some("cni0"),
            Self::Endpoint => Some("cni5"),
            Self::Elsewhere => Some("far1"),
            Self::Node => None,
        }
    }

    /// Its addresses. The node itself uses the one that the kernel chooses for a destination.
    pub(crate) fn sources(self, family: Family, destination: IpAddr) -> Vec<IpAddr> {
        let crowd = |first: u8, address: &dyn Fn(u8) -> IpAddr| (first..first + CROWD).map(address).collect();
        match self {
            Self::Partner => crowd(PARTNERS, &|last| outside(family, last)),
            Self::Stranger => crowd(STRANGERS, &|last| outside(family, last)),
            Self::Pod => crowd(CLIENT_PODS, &|last| pod(family, 1, last)),
            Self::Elsewhere => crowd(CLIENT_PODS, &|last| pod(family, 4, last)),
            Self::Endpoint => vec![pod(family, 1, PODS[0])],
            Self::Node if destination.is_loopback() || of_node(family).contains(&destination) => {
                vec![destination]
            }
            Self::Node => vec![outside(family, PRIMARY)],
        }
    }
}

/// The last numbers of the first addresses of groups.
pub(crate) const PARTNERS: u8 = 64;
pub(crate) const STRANGERS: u8 = 128;
pub(crate) const CLIENT_PODS: u8 = 64;
