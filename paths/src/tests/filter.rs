//! Mode Filter: nodes whose kube-proxy sees less, once their agent has acknowledged it.

use serde_json::json;

use super::World;
use super::world::reason;
use crate::{Actor, KubeProxy, ProxyMode};

/// An object of mode Filter in force everywhere.
fn filtered(elsewhere: &str) -> World {
    let mut world = World::web_on("Local", &["edge-1"]);
    world.service(&json!({
        "metadata": {"labels": {"sourcepreserve.io/preserve": "web"}},
        "spec": {"externalTrafficPolicy": "Local"},
    }));
    world.preserve("Filter", elsewhere);
    for node in ["work-1", "work-2"] {
        world.report(node, "Filter", elsewhere, true);
    }
    world
}

#[test]
fn other_nodes_send_traffic_to_external_addresses_out_to_the_ingress_node() {
    let world = filtered("ClusterOnly");
    world.check(
        "
        198.51.100.10 -> 192.0.2.10:80:         web-0 sees 198.51.100.10
        198.51.100.10 -> 192.0.2.11:80:         web-0 sees 198.51.100.10
        198.51.100.10 -> 10.90.0.13:30080:      dropped
        pod/tools/work-1 -> 192.0.2.10:80:      web-0 sees 10.90.0.12
        node/work-1 -> 192.0.2.10:80:           web-0 sees 10.90.0.12
        pod/tools/work-1 -> 10.96.7.7:80:       web-0 sees 10.244.2.99
        pod/tools/edge-1 -> 192.0.2.10:80:      web-0 sees 10.244.1.99
        ",
    );
    let paths = world.paths("pod/tools/work-1", "192.0.2.10:80");
    let hops: Vec<_> =
        paths[0].hops.iter().map(|hop| (hop.place.to_string(), hop.actor, hop.assumed)).collect();
    assert_eq!(
        hops,
        [
            ("node work-1".to_owned(), Actor::Routes, false),
            ("node work-1".to_owned(), Actor::NetworkPlugin, true),
            ("outside".to_owned(), Actor::LoadBalancer, true),
            ("node edge-1".to_owned(), Actor::KubeProxy, false),
        ]
    );
    assert_eq!(
        paths[0].hops[0].reason,
        "no rule of the node intercepts 192.0.2.10:80: IngressSourcePreserve web hides the external addresses of the Service from this node, so it leaves \
         the node like traffic to any other host"
    );
}

#[test]
fn a_hidden_service_is_not_there_at_all() {
    let world = filtered("Hidden");
    world.check(
        "
        pod/tools/work-1 -> 10.96.7.7:80:       dropped
        198.51.100.10 -> 10.90.0.13:30080:      refused
        pod/tools/work-1 -> 192.0.2.10:80:      web-0 sees 10.90.0.12
        pod/tools/edge-1 -> 10.96.7.7:80:       web-0 sees 10.244.1.99
        ",
    );
    let reason = reason(&world.paths("pod/tools/work-1", "10.96.7.7:80"));
    assert_eq!(
        reason,
        "no rule of node work-1 serves the ClusterIP 10.96.7.7: IngressSourcePreserve web hides the Service from this node"
    );
}

#[test]
fn a_node_whose_agent_is_missing_or_has_not_acknowledged_serves_everything() {
    let mut world = filtered("ClusterOnly");
    world.report("work-1", "Filter", "ClusterOnly", false);
    world.check("pod/tools/work-1 -> 192.0.2.10:80: web-0 sees 10.244.2.99");
    let paths = world.paths("pod/tools/work-1", "192.0.2.10:80");
    assert!(paths[0].hops[0].reason.contains("(the agent has not acknowledged the view of "), "{paths:#?}");
    let mut world = World::web_on("Local", &["edge-1"]);
    world.preserve("Filter", "ClusterOnly");
    world.check("pod/tools/work-1 -> 192.0.2.10:80: web-0 sees 10.244.2.99");
}

#[test]
fn a_packet_that_arrives_at_a_node_that_hides_the_address_gets_no_answer() {
    let world = filtered("ClusterOnly");
    let reason = reason(&world.paths("198.51.100.10 via work-2", "192.0.2.10:80"));
    assert!(reason.starts_with("no rule of node work-2 serves 192.0.2.10:80: "), "{reason}");
}

#[test]
fn a_packet_to_a_hidden_cluster_ip_leaves_the_node_unless_kube_proxy_drops_it() {
    let actors = |world: &World| {
        let paths = world.paths("pod/tools/work-1", "10.96.7.7:80");
        let hops = paths[0].hops.iter();
        hops.map(|hop| hop.actor).collect::<Vec<_>>()
    };
    let mut world = filtered("Hidden");
    assert_eq!(actors(&world), []);
    world.cluster.set_kube_proxy(KubeProxy { mode: ProxyMode::Iptables, ..World::kube_proxy() });
    assert_eq!(actors(&world), [Actor::Routes]);
    world.check("pod/tools/work-1 -> 10.96.7.7:80: dropped");
}
