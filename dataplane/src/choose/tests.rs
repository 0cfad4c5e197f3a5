//! Row by row, kube-proxy's choice of endpoints.

use super::*;
use crate::model::{LocalPods, NodePortAddresses};

fn node() -> Node {
    Node {
        name: "n1".into(),
        zone: Some("z1".into()),
        addresses: Vec::new(),
        local_pods: LocalPods::Unknown,
        node_port_addresses: NodePortAddresses::Primary,
        masquerade_all: false,
    }
}

/// A ready endpoint, named by the last byte of its address.
fn on(node: &str, last: u8) -> Endpoint {
    Endpoint {
        target: Target { address: [10, 0, 0, last].into(), port: 80 },
        ready: true,
        serving: true,
        terminating: false,
        node: Some(node.into()),
        zone_hints: Vec::new(),
        node_hints: Vec::new(),
    }
}

fn unready(endpoint: Endpoint) -> Endpoint {
    Endpoint { ready: false, serving: false, ..endpoint }
}

fn fading(endpoint: Endpoint) -> Endpoint {
    Endpoint { ready: false, serving: true, terminating: true, ..endpoint }
}

fn for_zone(zone: &str, endpoint: Endpoint) -> Endpoint {
    Endpoint { zone_hints: vec![zone.into()], ..endpoint }
}

fn for_node(node: &str, endpoint: Endpoint) -> Endpoint {
    Endpoint { node_hints: vec![node.into()], ..endpoint }
}

/// The last bytes of both sets.
fn sets(endpoints: &[Endpoint]) -> (Vec<u8>, Vec<u8>) {
    let last = |targets: &[Target]| {
        targets
            .iter()
            .map(|target| match target.address {
                std::net::IpAddr::V4(address) => address.octets()[3],
                std::net::IpAddr::V6(_) => 0,
            })
            .collect()
    };
    let chosen = choose(endpoints, &node(), Family::Ip);
    (last(&chosen.cluster), last(&chosen.local))
}

#[test]
fn ready_endpoints_are_used_and_those_of_this_node_are_local() {
    let endpoints = [on("n1", 1), on("n2", 2), unready(on("n1", 3)), unready(on("n2", 4))];
    assert_eq!(sets(&endpoints), (vec![1, 2], vec![1]));
}

#[test]
fn an_endpoint_without_a_node_is_not_local() {
    assert_eq!(sets(&[Endpoint { node: None, ..on("n1", 1) }]), (vec![1], vec![]));
}

#[test]
fn terminating_endpoints_serve_while_nothing_is_ready() {
    assert_eq!(
        sets(&[fading(on("n1", 1)), fading(on("n2", 2)), unready(on("n2", 3))]),
        (vec![1, 2], vec![1])
    );
}

#[test]
fn the_fallback_is_judged_for_each_set_alone() {
    // A ready endpoint elsewhere: the local set falls back, the cluster set does not.
    assert_eq!(sets(&[fading(on("n1", 1)), on("n2", 2)]), (vec![2], vec![1]));
    // A ready endpoint here: neither does.
    assert_eq!(sets(&[on("n1", 1), fading(on("n1", 2)), fading(on("n2", 3))]), (vec![1], vec![1]));
}

#[test]
fn terminating_endpoints_that_do_not_serve_are_never_used() {
    let gone = Endpoint { serving: false, ..fading(on("n1", 1)) };
    assert_eq!(sets(&[gone]), (vec![], vec![]));
}

#[test]
fn a_new_pod_with_the_address_of_a_terminating_one_counts_in_either_order() {
    for endpoints in [[on("n1", 1), fading(on("n2", 1))], [fading(on("n2", 1)), on("n1", 1)]] {
        assert_eq!(sets(&endpoints), (vec![1], vec![1]));
    }
}

#[test]
fn the_same_address_with_another_port_is_another_endpoint() {
    let mut other = on("n1", 1);
    other.target.port = 81;
    assert_eq!(choose(&[on("n1", 1), other], &node(), Family::Ip).cluster.len(), 2);
}

#[test]
fn zone_hints_count_if_all_ready_endpoints_have_them_and_one_names_this_zone() {
    let here = for_zone("z1", on("n1", 1));
    let there = for_zone("z2", on("n2", 2));
    assert_eq!(sets(&[here.clone(), there.clone()]).0, [1]);
    assert_eq!(sets(&[here.clone(), there.clone(), on("n3", 3)]).0, [1, 2, 3], "one has no hint");
    assert_eq!(sets(&[here.clone(), there.clone(), unready(on("n3", 3))]).0, [1], "only ready ones count");
    assert_eq!(sets(std::slice::from_ref(&there)).0, [2], "none for this zone");
}

#[test]
fn node_hints_come_before_zone_hints() {
    let here = for_zone("z1", for_node("n1", on("n1", 1)));
    let near = for_zone("z1", for_node("n2", on("n2", 2)));
    assert_eq!(sets(&[here, near.clone()]).0, [1]);
    let near_too = for_zone("z2", for_node("n3", on("n3", 3)));
    assert_eq!(sets(&[near, near_too]).0, [2], "no hint for this node: zones count");
}

#[test]
fn hints_do_not_narrow_the_local_set() {
    assert_eq!(sets(&[for_zone("z1", on("n2", 1)), for_zone("z2", on("n1", 2))]), (vec![1], vec![2]));
}

#[test]
fn a_node_without_a_zone_ignores_zone_hints() {
    let node = Node { zone: None, ..node() };
    let endpoints = [for_zone("z1", on("n1", 1)), for_zone("z2", on("n2", 2))];
    assert_eq!(choose(&endpoints, &node, Family::Ip).cluster.len(), 2);
}

#[test]
fn endpoints_of_the_other_family_are_not_seen() {
    let mut other = on("n1", 1);
    other.target.address = "fd00::1".parse().unwrap();
    assert_eq!(choose(std::slice::from_ref(&other), &node(), Family::Ip), Chosen::default());
    assert_eq!(choose(&[other], &node(), Family::Ip6).cluster.len(), 1);
}

#[test]
fn a_health_check_counts_ready_addresses_of_this_node_once() {
    let port = |number, endpoints| crate::model::ServicePort {
        protocol: crate::nft::Protocol::Tcp,
        port: number,
        node_port: None,
        endpoints,
    };
    let mut other_port = on("n1", 1);
    other_port.target.port = 443;
    let service = Service {
        ports: vec![
            port(80, vec![on("n1", 1), on("n2", 2), fading(on("n1", 3)), unready(on("n1", 4))]),
            port(443, vec![other_port]),
        ],
        ..Service::default()
    };
    assert_eq!(local_ready(&service, &node(), Family::Ip), 1);
    assert_eq!(local_ready(&service, &node(), Family::Ip6), 0);

    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    let node = Node { addresses: ["192.0.2.1", "192.0.2.2", "2001:db8::1"].map(ip).to_vec(), ..node() };
    let v4_only = Service { cluster_ips: vec![ip("10.96.0.1")], ..service };
    assert_eq!(health_checks(&v4_only, &node), BTreeMap::from([(ip("192.0.2.1"), 1)]));
    let dual = Service { cluster_ips: vec![ip("10.96.0.1"), ip("fd00:96::1")], ..v4_only };
    let expected = BTreeMap::from([(ip("192.0.2.1"), 1), (ip("2001:db8::1"), 0)]);
    assert_eq!(
        health_checks(&dual, &node),
        expected,
        "each family counts its own, where NodePorts are served"
    );
}
