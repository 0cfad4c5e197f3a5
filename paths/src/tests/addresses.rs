//! Addresses that are not a Service's, and requests that make no sense.

use serde_json::json;

use super::World;
use super::world::{CLIENT, reason};
use crate::{Actor, Impossible, Key, Outcome, paths};

fn impossible(world: &World, from: &str, to: &str) -> Impossible {
    paths(&world.cluster, &World::request(from, to)).unwrap_err()
}

#[test]
fn traffic_to_the_world_leaves_with_the_address_of_the_node() {
    let world = World::web_on("Cluster", &["edge-1"]);
    world.check(
        "
        pod/tools/work-1 -> 203.0.113.9:443:  leaves as 10.90.0.12
        node/work-1 -> 203.0.113.9:443:       leaves as 10.90.0.12
        198.51.100.10 -> 203.0.113.9:443:     unclear
        198.51.100.10 -> 10.96.7.7:80:        unclear
        198.51.100.10 -> 10.244.1.5:8080:     unclear
        198.51.100.10 via work-1 -> 10.96.7.7:80:     web-0 sees 10.90.0.12!
        198.51.100.10 via edge-1 -> 10.244.1.5:8080:  web-0 sees 198.51.100.10
        pod/tools/work-1 -> 10.244.2.77:80:   unclear
        node/work-1 -> 10.90.0.13:22:         unclear
        ",
    );
    let paths = world.paths("pod/tools/work-1", "203.0.113.9:443");
    assert_eq!((paths[0].hops.len(), paths[0].hops[0].actor), (1, Actor::NetworkPlugin));
    assert!(paths[0].is_fine());
}

#[test]
fn an_endpoint_on_the_host_network_is_reached_through_the_pod_networks_masquerade() {
    let mut world = World::web_on("Local", &[]);
    world.slice("IPv4", &json!([{"addresses": ["10.90.0.11"], "nodeName": "edge-1"}]));
    world.check(
        "
        198.51.100.10 -> 192.0.2.10:80:    ? sees 198.51.100.10
        pod/tools/work-1 -> 10.96.7.7:80:  ? sees 10.90.0.12
        pod/tools/edge-1 -> 10.96.7.7:80:  ? sees 10.244.1.99
        ",
    );
    let host = json!({
        "spec": {"hostNetwork": true, "containers": [{"name": "app", "ports": [{"containerPort": 8080}]}]},
        "status": {"podIPs": [{"ip": "10.90.0.11"}]},
    });
    world.pod("shop/host", "edge-1", 5, &host);
    world.check("pod/tools/work-1 -> 10.96.7.7:80: host sees 10.90.0.12");
    world.check("pod/shop/host -> 10.96.7.7:80: host sees 10.90.0.11");
}

#[test]
fn an_address_of_a_proxying_load_balancer_is_left_to_it() {
    let mut world = World::web_on("Local", &["edge-1"]);
    world.service(&json!({
        "spec": {"externalTrafficPolicy": "Local"},
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.10", "ipMode": "Proxy"}]}},
    }));
    let paths = world.paths("pod/tools/work-1", "192.0.2.10:80");
    assert!(reason(&paths).contains("ipMode Proxy"), "{paths:#?}");
    assert!(reason(&world.paths(CLIENT, "192.0.2.10:80")).contains("ipMode Proxy"));
}

#[test]
fn a_cloud_translates_the_external_address_of_a_node() {
    let mut world = World::web_on("Local", &["edge-1"]);
    world.node(&json!({
        "metadata": {"name": "edge-1"}, "spec": {"podCIDRs": ["10.244.1.0/24"]},
        "status": {"addresses": [
            {"type": "InternalIP", "address": "10.90.0.11"}, {"type": "ExternalIP", "address": "203.0.113.11"},
        ]},
    }));
    let paths = world.paths(CLIENT, "203.0.113.11:30080");
    assert!(matches!(&paths[0].outcome, Outcome::Delivered(delivery) if delivery.kept), "{paths:#?}");
    assert!(paths[0].hops[0].assumed);
    world.check("pod/tools/work-1 -> 203.0.113.11:30080: web-0 sees 10.90.0.12");
}

#[test]
fn more_ways_than_can_be_shown_are_refused() {
    let mut world = World::web_on("Cluster", &[]);
    for number in 0..20 {
        world.node(&json!({
            "metadata": {"name": format!("more-{number}")},
            "status": {"addresses": [{"type": "InternalIP", "address": format!("10.90.1.{number}")}]},
        }));
    }
    let endpoints: Vec<_> = (0..3000_u32)
        .map(|number| json!({"addresses": [std::net::Ipv4Addr::from(0x0af4_0300 + number).to_string()]}))
        .collect();
    world.slice("IPv4", &json!(endpoints));
    assert_eq!(impossible(&world, CLIENT, "192.0.2.10:80"), Impossible::TooMany(50_000));
    let request = World::request("198.51.100.10 via more-1", "192.0.2.10:80");
    assert_eq!(paths(&world.cluster, &request).unwrap().len(), 3000);
}

#[test]
fn nodes_that_are_not_ready_or_excluded_take_no_traffic() {
    let mut world = World::web_on("Cluster", &["edge-1"]);
    for (node, number, fields) in [
        ("work-1", 12, json!([{"type": "Ready", "status": "False"}])),
        ("work-2", 13, json!([{"type": "Ready", "status": "True"}])),
    ] {
        let excluded = if node == "work-2" {
            json!({"node.kubernetes.io/exclude-from-external-load-balancers": ""})
        } else {
            json!({})
        };
        world.node(&json!({
            "metadata": {"name": node, "labels": excluded},
            "status": {"conditions": fields, "addresses": [{"type": "InternalIP", "address": format!("10.90.0.{number}")}]},
        }));
    }
    assert_eq!(world.paths(CLIENT, "192.0.2.10:80").len(), 1);
}

#[test]
fn what_is_not_there_is_named() {
    let world = World::web_on("Cluster", &["edge-1"]);
    let to = "10.96.7.7:80";
    assert_eq!(impossible(&world, "pod/shop/none", to), Impossible::NoPod(Key::new("shop", "none")));
    assert_eq!(impossible(&world, "node/none", to), Impossible::NoNode("none".to_owned()));
    assert_eq!(impossible(&world, "198.51.100.10 via none", to), Impossible::NoNode("none".to_owned()));
    assert!(matches!(impossible(&world, "2001:db8::1", to), Impossible::OtherFamily { .. }));
    assert!(matches!(impossible(&world, "node/work-1", "127.0.0.1:80"), Impossible::NotRouted(_)));
    let text = impossible(&world, "2001:db8::1", to).to_string();
    assert_eq!(
        text,
        "2001:db8::1 has no IPv4 address, and 10.96.7.7 is one: use an address of the same family"
    );
}

#[test]
fn an_object_that_comes_again_replaces_itself() {
    let mut world = World::web_on("Cluster", &["edge-1"]);
    world.service(&json!({"spec": {"externalIPs": null}}));
    world.check("pod/tools/work-1 -> 192.0.2.11:80: leaves as 10.90.0.12");
    world.pod("shop/web-0", "edge-1", 6, &json!({}));
    world.check("pod/tools/work-1 -> 10.244.1.5:8080: unclear");
    world.pod("shop/web-0", "edge-1", 6, &json!({"status": {"phase": "Succeeded"}}));
    world.check("pod/tools/work-1 -> 10.244.1.6:8080: unclear");
}

#[test]
fn thousands_of_endpoints_and_services_are_followed_quickly() {
    let mut world = World::web_on("Cluster", &[]);
    let endpoints: Vec<_> = (0..5000_u32)
        .map(|number| {
            let address = std::net::Ipv4Addr::from(0x0af4_0300 + (number << 8 & 0xff_0000) + (number & 0xff));
            json!({"addresses": [address.to_string()], "nodeName": "work-2"})
        })
        .collect();
    world.slice("IPv4", &json!(endpoints));
    let paths = world.paths("pod/tools/work-1", "10.96.7.7:80");
    assert!(paths.len() > 1000, "{}", paths.len());
}
