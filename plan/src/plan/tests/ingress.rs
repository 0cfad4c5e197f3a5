//! Ingress nodes that are unlabelled, renamed or fail: reachable Services stay reachable.

use isp_api::preserve::{Phase, ServiceState, TrafficPolicy};
use isp_api::view::View;
use k8s_openapi::jiff::SignedDuration;
use serde_json::json;

use super::frontend::{condition, phase, ready, spec, state, story, web, with_object};
use super::world::{INGRESS, World};
use crate::cluster::Key;

fn unlabel(world: &mut World, node: &str) {
    world.node(node, |node| drop(node.labels.remove(INGRESS)));
}

fn label(world: &mut World, node: &str) {
    world.node(node, |node| drop(node.labels.insert(INGRESS.to_owned(), String::new())));
}

/// Whether external clients get an answer: a node with an endpoint shows the Service in full.
pub(super) fn is_reachable(world: &World) -> bool {
    let labelled = world.cluster.services[&web()].labels.contains_key("sourcepreserve.io/preserve");
    let object = world.cluster.objects.get("web");
    let uid = object.and_then(|object| object.metadata.uid.clone()).unwrap_or_default();
    let ready = world.cluster.ready_endpoints(&web());
    ready.keys().any(|name| {
        let node = &world.cluster.nodes[*name];
        let report = world.cluster.reports.get(*name);
        let full =
            report.and_then(|report| report.acknowledged.get(&uid)).map(|said| said.view) == Some(View::Full);
        !labelled || node.pool.is_none() || full
    })
}

#[test]
fn the_last_ingress_node_that_loses_its_label_stays_one_until_another_serves() {
    let mut world = ready();
    unlabel(&mut world, "edge");
    let told = story(&mut world);
    assert!(told.is_empty(), "{told:?}");
    assert!(is_reachable(&world));
    let (status, reason, message) = condition(&world, "Degraded");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "LastIngressNode"));
    assert!(message.contains("node edge"), "{message}");
    let listed = world.cluster.objects["web"].status.as_ref().unwrap().ingress_nodes.clone();
    assert_eq!(listed, Some(vec!["edge".to_owned()]));

    // Another node becomes an ingress node and gets an endpoint. Only then is the former one handed
    // over.
    label(&mut world, "work-1");
    world.set_endpoints(&web(), "work-1", 1);
    while world.cluster.nodes["edge"].pool.is_none() {
        world.controllers();
        world.step();
        assert!(is_reachable(&world));
        world.now += SignedDuration::from_secs(1);
    }
    world.settle(|_, _| {});
    assert_eq!(phase(&world), Phase::Ready);
    assert!(world.cluster.nodes["work-1"].pool.is_none());
}

#[test]
fn an_ingress_node_with_an_agent_for_another_object_does_not_hide_what_only_it_serves() {
    let mut world = with_object(json!({}));
    // `other` uses different ingress nodes, so edge has an agent, too.
    world.node("work-1", |node| drop(node.labels.insert("inner".to_owned(), String::new())));
    let other = Key::new("web", "other");
    world.add_service(&other, "kubectl-create");
    world.set_endpoints(&other, "work-1", 1);
    let inner = json!({"selector": {"matchLabels": {"inner": ""}}});
    let services = json!([{"namespace": "web", "name": "other"}]);
    world.add_object("other", &spec(json!({"ingressNodes": inner, "services": services})));
    world.settle(|_, _| {});
    assert_eq!(phase(&world), Phase::Ready);
    assert!(world.cluster.nodes["edge"].pool.is_some() && is_reachable(&world));

    unlabel(&mut world, "edge");
    for _ in 0..20 {
        world.controllers();
        assert!(is_reachable(&world), "the agent of edge hides nothing before the operator agrees");
        world.step();
    }
    assert_eq!(condition(&world, "Degraded").1, "LastIngressNode");
}

#[test]
fn a_selector_that_matches_nothing_and_a_node_that_registers_anew_close_nothing() {
    let mut world = ready();
    let nothing = json!({"selector": {"matchLabels": {"no": "node"}}});
    world.object("web", |object| object.spec.ingress_nodes = serde_json::from_value(nothing).unwrap());
    story(&mut world);
    assert!(is_reachable(&world) && world.cluster.nodes["edge"].pool.is_none());

    let mut world = ready();
    let endpoints = world.cluster.endpoints.clone();
    world.remove_node("edge");
    world.cluster.endpoints = endpoints;
    world.controllers();
    world.step();
    world.add_node("edge", &[]);
    story(&mut world);
    assert!(is_reachable(&world) && world.cluster.nodes["edge"].pool.is_none());
    assert_eq!(condition(&world, "Degraded").1, "LastIngressNode");
}

#[test]
fn a_service_whose_ingress_nodes_die_is_shown_where_it_runs_and_hidden_again_when_they_are_back() {
    for (policy, then) in [("KeepLocal", TrafficPolicy::Local), ("FallBack", TrafficPolicy::Cluster)] {
        let mut world = with_object(json!({"whenNoIngressEndpoint": policy}));
        world.settle(|_, _| {});
        world.set_endpoints(&web(), "edge", 0);
        world.set_endpoints(&web(), "work-1", 1);
        world.controllers();
        world.step();
        assert!(is_reachable(&world), "{policy}: at once");
        story(&mut world);
        assert!(is_reachable(&world), "{policy}");
        assert_eq!(world.cluster.services[&web()].policy, Some(then));
        let expected = if policy == "FallBack" { ServiceState::FellBack } else { ServiceState::Open };
        assert_eq!((state(&world), phase(&world)), (expected, Phase::Degraded));

        world.set_endpoints(&web(), "edge", 1);
        world.controllers();
        world.step();
        let before = world.now;
        let told = story(&mut world);
        assert_eq!(told[0], "label-service service/web/frontend", "{told:?}");
        assert!(world.now >= before + SignedDuration::from_secs(30), "it has to stay");
        assert_eq!((state(&world), phase(&world)), (ServiceState::Preserved, Phase::Ready));

        world.delete_object("web");
        world.settle(|_, _| {});
        assert_eq!(world.cluster.services[&web()].policy, Some(TrafficPolicy::Cluster));
    }
}
