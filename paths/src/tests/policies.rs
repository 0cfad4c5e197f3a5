//! Traffic policies on a cluster without any object: all sources and destinations.

use serde_json::json;

use super::World;
use super::world::{CLIENT, reason};
use crate::{Actor, KubeProxy, ProxyMode};

#[test]
fn with_policy_cluster_the_first_node_replaces_the_source_of_external_traffic() {
    World::web_on("Cluster", &["edge-1"]).check(
        "
        198.51.100.10 via edge-1 -> 192.0.2.10:80:  web-0 sees 10.244.1.1!
        198.51.100.10 via work-1 -> 192.0.2.10:80:  web-0 sees 10.90.0.12!
        198.51.100.10 -> 192.0.2.11:80:             web-0 sees 10.244.1.1!, web-0 sees 10.90.0.12!, web-0 sees 10.90.0.13!
        198.51.100.10 -> 10.90.0.11:30080:          web-0 sees 10.244.1.1!
        198.51.100.10 -> 10.90.0.13:30080:          web-0 sees 10.90.0.13!
        pod/tools/work-1 -> 192.0.2.10:80:          web-0 sees 10.90.0.12
        pod/tools/work-1 -> 10.96.7.7:80:           web-0 sees 10.244.2.99
        pod/tools/work-1 -> 10.90.0.12:30080:       web-0 sees 10.90.0.12
        pod/tools/work-1 -> 10.90.0.13:30080:       web-0 sees 10.90.0.13!
        pod/tools/edge-1 -> 10.96.7.7:80:           web-0 sees 10.244.1.99
        node/work-1 -> 192.0.2.10:80:               web-0 sees 10.90.0.12
        node/work-1 -> 10.96.7.7:80:                web-0 sees 10.90.0.12
        node/work-1 -> 10.90.0.13:30080:            web-0 sees 10.90.0.13!
        node/edge-1 -> 10.96.7.7:80:                web-0 sees 10.244.1.1
        node/edge-1 -> 10.244.1.5:8080:             web-0 sees 10.244.1.1
        pod/tools/work-2 -> 10.244.1.5:8080:        web-0 sees 10.244.3.99
        ",
    );
}

#[test]
fn with_policy_local_the_source_is_kept_where_an_endpoint_is_and_dropped_elsewhere() {
    World::web_on("Local", &["edge-1"]).check(
        "
        198.51.100.10 -> 192.0.2.10:80:             web-0 sees 198.51.100.10
        198.51.100.10 via work-1 -> 192.0.2.10:80:  dropped
        198.51.100.10 -> 192.0.2.11:80:             dropped, web-0 sees 198.51.100.10
        198.51.100.10 -> 10.90.0.11:30080:          web-0 sees 198.51.100.10
        198.51.100.10 -> 10.90.0.13:30080:          dropped
        pod/tools/work-1 -> 192.0.2.10:80:          web-0 sees 10.244.2.99
        pod/tools/work-1 -> 10.90.0.12:30080:       web-0 sees 10.244.2.99
        pod/tools/work-1 -> 10.90.0.11:30080:       web-0 sees 10.90.0.12
        pod/tools/work-1 -> 10.90.0.13:30080:       dropped
        node/work-1 -> 192.0.2.10:80:               web-0 sees 10.90.0.12
        node/work-1 -> 10.90.0.12:30080:            web-0 sees 10.90.0.12
        node/work-1 -> 10.90.0.11:30080:            web-0 sees 10.90.0.12
        node/edge-1 -> 192.0.2.10:80:               web-0 sees 10.244.1.1
        ",
    );
}

#[test]
fn ipv6_goes_the_same_way_with_its_own_addresses() {
    World::web_on("Local", &["edge-1"]).check(
        "
        2001:db8:1::a -> [2001:db8:2::10]:80:       web-0 sees 2001:db8:1::a
        2001:db8:1::a -> [fd00:90::13]:30080:       dropped
        pod/tools/work-1 -> [fd00:96::7]:80:        web-0 sees fd00:244:0:2::99
        pod/tools/work-1 -> [2001:db8:2::10]:80:    web-0 sees fd00:244:0:2::99
        ",
    );
    World::web_on("Cluster", &["edge-1"]).check(
        "
        2001:db8:1::a via edge-1 -> [2001:db8:2::10]:80:  web-0 sees fd00:244:0:1::1!
        2001:db8:1::a -> [fd00:90::13]:30080:             web-0 sees fd00:90::13!
        ",
    );
}

#[test]
fn every_endpoint_is_a_path_of_its_own_and_hints_leave_some_out() {
    let world = World::web_on("Cluster", &["edge-1", "work-1", "work-2"]);
    assert_eq!(world.paths("pod/tools/work-1", "10.96.7.7:80").len(), 3);
    let mut world = World::new();
    world.service(&json!({}));
    let hint = |zone: &str| json!({"hints": {"forZones": [{"name": zone}]}});
    world.endpoints(&[("edge-1", hint("z1")), ("work-1", hint("z2")), ("work-2", hint("z2"))]);
    world.check(
        "
        pod/tools/edge-1 -> 10.96.7.7:80:  web-0 sees 10.244.1.99
        pod/tools/work-2 -> 10.96.7.7:80:  web-1 sees 10.244.3.99, web-2 sees 10.244.3.99
        ",
    );
    let paths = world.paths("pod/tools/work-2", "10.96.7.7:80");
    assert!(paths[0].hops[0].reason.contains(", one of 2; "), "{:#?}", paths[0]);
}

#[test]
fn without_endpoints_clients_are_refused_and_with_none_ready_the_load_balancer_sends_nothing() {
    let mut world = World::web_on("Cluster", &[]);
    world.check(
        "
        198.51.100.10 -> 192.0.2.10:80:     refused
        pod/tools/work-1 -> 10.96.7.7:80:   refused
        node/work-1 -> 10.90.0.12:30080:    refused
        pod/tools/work-1 -> 10.96.7.7:81:   refused
        ",
    );
    let paths = world.paths(&format!("{CLIENT} via edge-1"), "192.0.2.10:80");
    assert_eq!(reason(&paths), "external IP of Service shop/web: the Service has no ready endpoint");
    world.service(&json!({"spec": {"externalTrafficPolicy": "Local"}}));
    let paths = world.paths(CLIENT, "192.0.2.10:80");
    assert!(reason(&paths).starts_with("the load balancer sends it to no node: "), "{paths:#?}");
    // Endpoints that still serve while they terminate are used by nodes, but fail the health check.
    let fading = json!({"conditions": {"ready": false, "serving": true, "terminating": true}});
    world.endpoints(&[("edge-1", fading)]);
    world.check(
        "
        198.51.100.10 -> 192.0.2.10:80:             dropped
        198.51.100.10 via edge-1 -> 192.0.2.10:80:  web-0 sees 198.51.100.10
        ",
    );
}

#[test]
fn source_ranges_drop_other_clients_at_the_load_balancer_address_only() {
    let mut world = World::web_on("Cluster", &["edge-1"]);
    world.service(&json!({"spec": {"loadBalancerSourceRanges": ["203.0.113.0/24"]}}));
    world.check(
        "
        198.51.100.10 via edge-1 -> 192.0.2.10:80:  dropped
        203.0.113.9 via edge-1 -> 192.0.2.10:80:    web-0 sees 10.244.1.1!
        198.51.100.10 via edge-1 -> 192.0.2.11:80:  web-0 sees 10.244.1.1!
        198.51.100.10 -> 10.90.0.11:30080:          web-0 sees 10.244.1.1!
        ",
    );
    let paths = world.paths("198.51.100.10 via edge-1", "192.0.2.10:80");
    let expected =
        "external IP of Service shop/web: 198.51.100.10 is not in loadBalancerSourceRanges (203.0.113.0/24)";
    assert_eq!(reason(&paths), expected);
}

#[test]
fn a_pod_that_reaches_itself_through_its_service_sees_its_node() {
    let world = World::web_on("Cluster", &["edge-1", "work-1"]);
    world.check("pod/shop/web-0 -> 10.96.7.7:80: web-0 sees 10.244.1.1, web-1 sees 10.244.1.5");
    let paths = world.paths("pod/shop/web-0", "10.96.7.7:80");
    let hairpin = paths.iter().find(|path| path.sent.source != path.hops[0].after.source).unwrap();
    assert!(hairpin.hops[0].reason.ends_with("because an endpoint reaches itself through its Service"));
}

#[test]
fn the_hops_say_who_changes_what_and_why() {
    let world = World::web_on("Cluster", &["edge-1"]);
    let paths = world.paths(CLIENT, "10.90.0.13:30080");
    let [hop] = paths[0].hops.as_slice() else { panic!("{paths:#?}") };
    assert_eq!((hop.place.to_string().as_str(), hop.actor), ("node work-2", Actor::KubeProxy));
    assert_eq!(
        hop.reason,
        "NodePort of Service shop/web: redirected to the endpoint 10.244.1.5:8080; the source IP becomes the node's (SNAT), \
         because externalTrafficPolicy is Cluster"
    );
    assert_eq!(hop.before.to_string(), "198.51.100.10 to 10.90.0.13:30080");
    assert_eq!(hop.after.to_string(), "10.90.0.13 to 10.244.1.5:8080");
    assert_eq!(paths[0].loss(), Some(hop));
    assert!(hop.rules.is_empty() && !hop.assumed, "kube-proxy's own rules look different");
}

#[test]
fn internal_policy_local_drops_where_there_is_no_endpoint() {
    let mut world = World::web_on("Cluster", &["edge-1"]);
    world.service(&json!({"spec": {"internalTrafficPolicy": "Local"}}));
    world.check(
        "
        pod/tools/edge-1 -> 10.96.7.7:80:  web-0 sees 10.244.1.99
        pod/tools/work-1 -> 10.96.7.7:80:  dropped
        ",
    );
}

#[test]
fn settings_of_kube_proxy_change_the_outcome() {
    let mut world = World::web_on("Local", &["edge-1"]);
    world.cluster.set_kube_proxy(KubeProxy { masquerade_all: true, ..World::kube_proxy() });
    world.check("pod/tools/work-1 -> 10.96.7.7:80: web-0 sees 10.90.0.12");
    world.cluster.set_kube_proxy(KubeProxy { cluster_cidrs: Vec::new(), ..World::kube_proxy() });
    // Without a range, kube-proxy does not know its own pods.
    world.check("pod/tools/work-1 -> 192.0.2.10:80: dropped");
    let addresses = vec!["192.168.0.0/16".to_owned()];
    world.cluster.set_kube_proxy(KubeProxy { node_port_addresses: addresses, ..World::kube_proxy() });
    world.check("198.51.100.10 -> 10.90.0.11:30080: refused");
}

#[test]
fn mode_iptables_answers_node_ports_on_the_bridge_and_does_not_refuse_other_ports() {
    let mut world = World::web_on("Cluster", &["edge-1"]);
    world.check("pod/tools/work-1 -> 10.244.2.1:30080: refused");
    world.cluster.set_kube_proxy(KubeProxy { mode: ProxyMode::Iptables, ..World::kube_proxy() });
    world.check(
        "
        pod/tools/work-1 -> 10.244.2.1:30080:  web-0 sees 10.90.0.12
        pod/tools/work-1 -> 10.96.7.7:81:      dropped
        ",
    );
    let paths = world.paths("pod/tools/work-1", "10.96.7.7:81");
    assert_eq!(paths[0].hops.iter().map(|hop| hop.actor).collect::<Vec<_>>(), [Actor::Routes]);
    assert_eq!(
        reason(&paths),
        "no rule of node work-1 serves the ClusterIP 10.96.7.7: Service shop/web does not have this port, and no other host \
         has this address"
    );
}

#[test]
fn mode_iptables_does_not_refuse_its_own_host_at_an_external_address_without_endpoints() {
    let mut world = World::web_on("Cluster", &[]);
    world.check("node/work-1 -> 192.0.2.10:80: refused");
    world.cluster.set_kube_proxy(KubeProxy { mode: ProxyMode::Iptables, ..World::kube_proxy() });
    world.check(
        "
        node/work-1 -> 192.0.2.10:80:             dropped, refused
        node/work-1 via work-2 -> 192.0.2.10:80:  refused
        pod/tools/work-1 -> 192.0.2.10:80:        refused
        node/work-1 -> 10.90.0.12:30080:          refused
        node/work-1 -> 10.96.7.7:80:              refused
        ",
    );
    let paths = world.paths("node/work-1 via work-1", "192.0.2.10:80");
    assert_eq!(
        reason(&paths),
        "the packet comes back to node work-1, which drops packets from outside with its own address as the source"
    );
    world.service(&json!({"spec": {"externalTrafficPolicy": "Local"}}));
    world.check("node/work-1 -> 192.0.2.10:80: dropped");
}

#[test]
fn mode_iptables_compares_no_source_ranges_without_endpoints() {
    let mut world = World::web_on("Cluster", &[]);
    world.service(&json!({"spec": {"loadBalancerSourceRanges": ["203.0.113.0/24"]}}));
    world.check("198.51.100.10 via edge-1 -> 192.0.2.10:80: dropped");
    world.cluster.set_kube_proxy(KubeProxy { mode: ProxyMode::Iptables, ..World::kube_proxy() });
    world.check("198.51.100.10 via edge-1 -> 192.0.2.10:80: refused");
}

#[test]
fn mode_ipvs_is_unclear_where_it_differs() {
    let mut world = World::web_on("Local", &["edge-1"]);
    world.cluster.set_kube_proxy(KubeProxy { mode: ProxyMode::Ipvs, ..World::kube_proxy() });
    world.check(
        "
        198.51.100.10 -> 192.0.2.10:80:             web-0 sees 198.51.100.10
        198.51.100.10 via work-1 -> 192.0.2.10:80:  unclear
        pod/tools/work-1 -> 192.0.2.10:80:          unclear
        pod/tools/work-1 -> 10.96.7.7:80:           web-0 sees 10.244.2.99
        ",
    );
}

#[test]
fn a_source_that_becomes_an_unknown_address_of_a_node_is_unclear_and_not_preserved() {
    let mut world = World::web_on("Cluster", &["edge-1"]);
    let ready = json!([{"type": "Ready", "status": "True"}]);
    world.node(&json!({"metadata": {"name": "work-1"}, "status": {"conditions": ready}}));
    world.check("198.51.100.10 via work-1 -> 192.0.2.10:80: unclear");
}
