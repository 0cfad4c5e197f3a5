//! The lab's links, addresses and routes as `ip` commands and nftables rules, per network
//! namespace. Pure; init applies them.

use std::fmt::Write as _;
use std::net::IpAddr;

use crate::topology::{
    CLIENT, CLIENT_2, EXTERNAL_RANGE, FABRIC, Families, Node, POD_RANGE, Range, SERVICE_RANGE, Topology,
};

/// The setup of one network namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Setup {
    /// Lines for `ip -batch`.
    pub(crate) ip: Vec<String>,
    /// Files under `/proc/sys/net` and their values.
    pub(crate) sysctl: Vec<(&'static str, &'static str)>,
    /// Rules for `nft -f`.
    pub(crate) nft: String,
}

/// The names of all network namespaces except the control plane's: router, clients, nodes.
pub(crate) fn places(topology: &Topology) -> Vec<String> {
    ["router", "client", "client-2"]
        .into_iter()
        .map(str::to_owned)
        .chain(topology.nodes.iter().map(|node| node.name.to_string()))
        .collect()
}

const ROUTER: u8 = 2;
const CLIENT_HOST: u8 = 10;
const GATEWAY: u8 = 1;

/// The control plane's namespace: the fabric, and all veth pairs before their far ends are moved.
pub(crate) fn control_plane(topology: &Topology) -> Setup {
    let families = topology.families;
    let mut ip = vec![
        "link set lo up".to_owned(),
        "link add fabric type bridge forward_delay 0".to_owned(),
        "link set fabric up".to_owned(),
    ];
    ip.extend(addresses("fabric", &FABRIC.interface(1, families)));
    for (cable, place) in cables(topology) {
        ip.push(format!("link add {cable} type veth peer name eth0 netns {place}"));
        ip.push(format!("link set {cable} master fabric up"));
    }
    ip.push("link add to-client netns router type veth peer name eth0 netns client".to_owned());
    ip.push("link add to-client-2 netns router type veth peer name eth0 netns client-2".to_owned());
    for node in &topology.nodes {
        ip.extend(pod_routes(node, families));
    }
    // ClusterIPs are reached through a node, as from any machine next to the cluster. The API
    // server calls webhooks this way.
    let first = &topology.nodes[0];
    ip.extend(routes(&SERVICE_RANGE.cidrs(families), &first.addresses(families)));
    for range in [EXTERNAL_RANGE, CLIENT, CLIENT_2] {
        ip.extend(routes(&range.cidrs(families), &FABRIC.hosts(ROUTER, families)));
    }
    Setup { ip, sysctl: switch_only(families), nft: String::new() }
}

/// A node's namespace: its address, routes to the other nodes' pods, and a default route to the
/// router.
pub(crate) fn node(topology: &Topology, node: &Node) -> Setup {
    let families = topology.families;
    let mut ip = vec!["link set lo up".to_owned(), "link set eth0 up".to_owned()];
    ip.extend(addresses("eth0", &node.interface(families)));
    ip.extend(default_routes(&FABRIC.hosts(ROUTER, families)));
    for other in topology.nodes.iter().filter(|other| other.name != node.name) {
        ip.extend(pod_routes(other, families));
    }
    let mut sysctl = forwarding(families);
    // Connections between pods of one node cross a bridge. Without this, replies would bypass
    // conntrack, and DNAT would not be reversed.
    sysctl.extend(
        families.pick(("bridge/bridge-nf-call-iptables", "1"), ("bridge/bridge-nf-call-ip6tables", "1")),
    );
    Setup { ip, sysctl, nft: masquerade_pods(families) }
}

/// The router's namespace: an interface in every network. External addresses are unreachable until
/// `route` adds nodes.
pub(crate) fn router(families: Families) -> Setup {
    let mut ip = vec![
        "link set lo up".to_owned(),
        "link set eth0 up".to_owned(),
        "link set to-client up".to_owned(),
        "link set to-client-2 up".to_owned(),
    ];
    ip.extend(addresses("eth0", &FABRIC.interface(ROUTER, families)));
    ip.extend(addresses("to-client", &CLIENT.interface(GATEWAY, families)));
    ip.extend(addresses("to-client-2", &CLIENT_2.interface(GATEWAY, families)));
    ip.extend(EXTERNAL_RANGE.cidrs(families).iter().map(|range| format!("route add unreachable {range}")));
    let mut sysctl = forwarding(families);
    // ECMP hashes ports too, so that connections to one address spread over its nodes, as with a
    // load balancer.
    sysctl.extend(
        families.pick(("ipv4/fib_multipath_hash_policy", "1"), ("ipv6/fib_multipath_hash_policy", "1")),
    );
    Setup { ip, sysctl, nft: String::new() }
}

/// The namespace of a client in `range`.
pub(crate) fn client(range: Range, families: Families) -> Setup {
    let mut ip = vec!["link set lo up".to_owned(), "link set eth0 up".to_owned()];
    ip.extend(addresses("eth0", &range.interface(CLIENT_HOST, families)));
    ip.extend(default_routes(&range.hosts(GATEWAY, families)));
    Setup { ip, sysctl: Vec::new(), nft: String::new() }
}

/// The `ip` arguments that make the router send an external address to nodes. Without nodes, it
/// becomes unreachable.
pub(crate) fn external_route(address: IpAddr, nodes: &[IpAddr]) -> Vec<String> {
    let mut arguments = vec![if address.is_ipv6() { "-6" } else { "-4" }.to_owned()];
    let mut words = |text: String| arguments.extend(text.split(' ').map(str::to_owned));
    match nodes {
        [] => words(format!("route replace unreachable {address}")),
        [node] => words(format!("route replace {address} via {node}")),
        nodes => {
            words(format!("route replace {address}"));
            for node in nodes {
                words(format!("nexthop via {node}"));
            }
        }
    }
    arguments
}

fn cables(topology: &Topology) -> Vec<(String, String)> {
    [("router".to_owned(), "router".to_owned())]
        .into_iter()
        .chain(topology.nodes.iter().map(|node| (node.cable(), node.name.to_string())))
        .collect()
}

fn addresses(link: &str, interface: &[String]) -> Vec<String> {
    // Duplicate address detection would delay the use of an IPv6 address by a second; there are no
    // duplicates here.
    interface
        .iter()
        .map(|address| {
            format!("address add {address} dev {link}{}", if address.contains(':') { " nodad" } else { "" })
        })
        .collect()
}

fn routes(ranges: &[String], via: &[IpAddr]) -> Vec<String> {
    ranges.iter().zip(via).map(|(range, via)| format!("route add {range} via {via}")).collect()
}

fn default_routes(via: &[IpAddr]) -> Vec<String> {
    via.iter().map(|via| format!("route add default via {via}")).collect()
}

fn pod_routes(node: &Node, families: Families) -> Vec<String> {
    routes(&node.pods().cidrs(families), &node.addresses(families))
}

fn forwarding(families: Families) -> Vec<(&'static str, &'static str)> {
    families.pick(("ipv4/ip_forward", "1"), ("ipv6/conf/all/forwarding", "1"))
}

/// The fabric only switches: the control plane's netfilter rules must not see its traffic.
fn switch_only(families: Families) -> Vec<(&'static str, &'static str)> {
    families.pick(("bridge/bridge-nf-call-iptables", "0"), ("bridge/bridge-nf-call-ip6tables", "0"))
}

/// Masquerades traffic that leaves the cluster. There is no SNAT between pods.
fn masquerade_pods(families: Families) -> String {
    let mut rules = String::from(
        "table inet lab {\n chain pods-leaving {\n  type nat hook postrouting priority srcnat + 10;\n",
    );
    for (pods, family) in POD_RANGE.cidrs(families).iter().zip(families.pick("ip", "ip6")) {
        let _ =
            writeln!(rules, "  {family} saddr {pods} {family} daddr != {pods} oifname \"eth0\" masquerade");
    }
    rules.push_str(" }\n}\n");
    rules
}

#[cfg(test)]
mod tests;
