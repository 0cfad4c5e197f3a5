//! The addresses of a world. Every address has a counterpart in the other family, with the same
//! number at its end.

use std::net::IpAddr;

use isp_dataplane::nft::Family;

/// The node's name; the other nodes exist only as the names of endpoints' nodes.
pub(crate) const NODE: &str = "n1";
pub(crate) const ZONE: &str = "z1";
/// The node's addresses: the primary one, and one more that the Node lists.
pub(crate) const PRIMARY: u8 = 1;
pub(crate) const SECOND: u8 = 3;
/// An address of the node that the Node does not list.
pub(crate) const UNLISTED: u8 = 4;
/// The address of another node.
pub(crate) const OTHER_NODE: u8 = 2;
/// The last numbers of the node's pods that are endpoints, each in a namespace of its own.
pub(crate) const PODS: [u8; 3] = [5, 6, 7];
/// How many addresses a group of clients has. Session affinity needs many clients to reach every
/// endpoint.
pub(crate) const CROWD: u8 = 64;

pub(crate) const FAMILIES: [Family; 2] = [Family::Ip, Family::Ip6];

fn address(family: Family, v4: [u8; 3], v6: [u16; 4], last: u8) -> IpAddr {
    match family {
        Family::Ip => [v4[0], v4[1], v4[2], last].into(),
        Family::Ip6 => [v6[0], v6[1], v6[2], v6[3], 0, 0, 0, last.into()].into(),
    }
}

/// An address in the network outside, where the node and its clients are.
pub(crate) fn outside(family: Family, last: u8) -> IpAddr {
    address(family, [192, 0, 2], [0x2001, 0xdb8, 0, 0], last)
}

/// An address of a pod on the node with this number.
pub(crate) fn pod(family: Family, node: u8, last: u8) -> IpAddr {
    address(family, [10, 244, node], [0xfd00, 0x244, 0, node.into()], last)
}

/// An external address: of a load balancer, or in `externalIPs`.
pub(crate) fn external(family: Family, last: u8) -> IpAddr {
    address(family, [198, 51, 100], [0x2001, 0xdb8, 1, 0], last)
}

/// A ClusterIP. The API server's own allocations are elsewhere in the range.
pub(crate) fn cluster_ip(family: Family, last: u8) -> IpAddr {
    match family {
        Family::Ip => [10, 96, 7, last].into(),
        Family::Ip6 => [0xfd00, 0x96, 0, 0, 0, 0, 0, 0x7000 + u16::from(last)].into(),
    }
}

/// One end of a link between the node and something that is neither client nor pod.
pub(crate) fn link(family: Family, number: u8, last: u8) -> IpAddr {
    address(family, [100, 64, number], [0xfd00, 0x64, 0, number.into()], last)
}

/// Every address of the node.
pub(crate) fn of_node(family: Family) -> Vec<IpAddr> {
    let own = [PRIMARY, SECOND, UNLISTED].map(|last| outside(family, last));
    let links = [link(family, 0, 1), link(family, 1, 1), link(family, 2, 1)];
    own.into_iter().chain([pod(family, 1, 1)]).chain(links).collect()
}

/// A range of addresses in CIDR notation.
pub(crate) fn range(first: IpAddr, v4: u8, v6: u8) -> String {
    format!("{first}/{}", if first.is_ipv4() { v4 } else { v6 })
}

/// The range of one address.
pub(crate) fn only(address: IpAddr) -> String {
    range(address, 32, 128)
}
