//! Mode Beside: agents serve the Service from their own table, and kube-proxies skip it.

use serde_json::json;

use super::World;
use crate::Actor;

fn beside() -> World {
    let mut world = World::web_on("Local", &["edge-1"]);
    world.service(&json!({
        "metadata": {"labels": {
            "sourcepreserve.io/preserve": "web",
            "service.kubernetes.io/service-proxy-name": "ingress-source-preserve",
        }},
        "spec": {"externalTrafficPolicy": "Local"},
    }));
    world.preserve("Beside", "ClusterOnly");
    world.report("edge-1", "Beside", "Full", true);
    world.report("work-1", "Beside", "ClusterOnly", true);
    world
}

#[test]
fn agents_treat_packets_as_kube_proxy_would_with_the_same_view() {
    let world = beside();
    world.check(
        "
        198.51.100.10 -> 192.0.2.10:80:         web-0 sees 198.51.100.10
        198.51.100.10 -> 10.90.0.11:30080:      web-0 sees 198.51.100.10
        198.51.100.10 -> 10.90.0.12:30080:      dropped
        pod/tools/work-1 -> 192.0.2.10:80:      web-0 sees 10.90.0.12
        pod/tools/work-1 -> 10.96.7.7:80:       web-0 sees 10.244.2.99
        node/work-1 -> 10.96.7.7:80:            web-0 sees 10.90.0.12
        ",
    );
    let paths = world.paths("198.51.100.10", "192.0.2.10:80");
    let hop = &paths[0].hops[1];
    assert_eq!((hop.actor, hop.rules.is_empty()), (Actor::Agent, false));
    assert!(hop.rules.iter().any(|rule| rule.contains("dnat")), "{:#?}", hop.rules);
}

#[test]
fn a_node_without_an_agent_serves_nothing_of_it() {
    beside().check(
        "
        pod/tools/work-2 -> 10.96.7.7:80:       dropped
        198.51.100.10 -> 10.90.0.13:30080:      refused
        pod/tools/work-2 -> 192.0.2.10:80:      web-0 sees 10.90.0.13
        ",
    );
}

#[test]
fn while_both_serve_it_the_agents_table_comes_first() {
    let mut world = beside();
    world.service(&json!({
        "metadata": {"labels": {"sourcepreserve.io/preserve": "web"}},
        "spec": {"externalTrafficPolicy": "Local"},
    }));
    let paths = world.paths("pod/tools/work-1", "10.96.7.7:80");
    assert_eq!(paths[0].hops[0].actor, Actor::Agent);
    // The agent hides the external address, but kube-proxy still serves it.
    world.check("pod/tools/work-1 -> 192.0.2.10:80: web-0 sees 10.244.2.99");
}
