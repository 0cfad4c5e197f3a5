//! The rollout of agents in waves: failures, and nodes that join, leave and change.

use isp_api::preserve::{Phase, ServiceState, TrafficPolicy};
use k8s_openapi::jiff::SignedDuration;
use serde_json::json;

use super::frontend::{condition, phase, ready, state, story, web, with_object};
use super::world::{INGRESS, World};
use crate::action::Action;

#[test]
fn a_node_has_not_gone_over_while_the_clusters_kube_proxy_still_runs_there() {
    let mut world = with_object(json!({}));
    world.lingering.insert("work-1".to_owned());
    for _ in 0..20 {
        world.controllers();
        for action in world.plan().actions {
            assert!(!matches!(action, Action::ShapeService { .. }), "{action}");
            world.carry_out(&action);
        }
    }
    assert_eq!(phase(&world), Phase::Progressing);
    world.lingering.clear();
    story(&mut world);
    assert_eq!(phase(&world), Phase::Ready);
}

#[test]
fn a_kube_proxy_that_runs_again_where_an_agent_does_is_said() {
    let mut world = with_object(json!({}));
    story(&mut world);
    world.lingering.insert("work-1".to_owned());
    story(&mut world);
    let (status, reason, message) = condition(&world, "Acknowledged");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "KubeProxyRuns"));
    assert!(message.contains("node work-1"), "{message}");
    assert_eq!(phase(&world), Phase::Progressing);
    world.lingering.clear();
    story(&mut world);
    assert_eq!(phase(&world), Phase::Ready);
}

#[test]
fn a_bad_wave_is_rolled_back_at_its_deadline_and_the_services_are_untouched() {
    let mut world = with_object(json!({"rollout": {"maxUnavailable": 1, "progressDeadlineSeconds": 60}}));
    world.break_agent("work-1");
    let began = world.now;
    let told = story(&mut world);
    assert_eq!(
        told[6..],
        ["hand-over-node node/work-1", "roll-back-node node/work-1", "handed-back-node node/work-1"]
    );
    assert!(world.now < began + SignedDuration::from_secs(90));
    let (status, reason, message) = condition(&world, "AgentsReady");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "WaveFailed"));
    for part in ["pool default", "node work-1", "ImagePullBackOff"] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(phase(&world), Phase::Degraded);
    assert_eq!(world.cluster.services[&web()].policy, Some(TrafficPolicy::Cluster));
    assert!(world.cluster.nodes["work-1"].pool.is_none());

    // A new revision is tried again.
    world.broken.clear();
    world.settings.agent_image = "agent:2".to_owned();
    world.settle(|_, _| {});
    assert_eq!(phase(&world), Phase::Ready);
}

#[test]
fn a_bad_wave_pauses_where_it_is_and_goes_on_when_it_is_mended() {
    let rollout = json!({"maxUnavailable": 1, "progressDeadlineSeconds": 60, "onFailure": "Pause"});
    let mut world = with_object(json!({"rollout": rollout}));
    world.break_agent("work-1");
    world.settle(|_, _| {});
    assert_eq!(world.cluster.nodes["work-1"].pool.as_deref(), Some("default"));
    assert!(world.cluster.nodes["work-2"].pool.is_none(), "no other wave begins");
    assert_eq!(condition(&world, "AgentsReady").1, "WaveFailed");
    world.broken.clear();
    world.settle(|_, _| {});
    assert_eq!(phase(&world), Phase::Ready);
}

#[test]
fn a_paused_rollout_finishes_its_wave_and_begins_no_other() {
    let mut world = with_object(json!({}));
    while world.cluster.nodes["work-1"].pool.is_none() {
        world.controllers();
        world.step();
    }
    world.object("web", |object| object.spec.rollout.paused = true);
    assert_eq!(story(&mut world), ["handed-over-node node/work-1"]);
    assert_eq!(condition(&world, "AgentsReady").1, "Paused");
    world.object("web", |object| object.spec.rollout.paused = false);
    world.settle(|_, _| {});
    assert_eq!(phase(&world), Phase::Ready);
}

#[test]
fn a_wave_has_the_size_that_was_asked_for() {
    let nodes: Vec<String> = (0..10).map(|number| format!("node-{number}")).collect();
    for (size, expected) in [(json!(3), 3), (json!("50%"), 5), (json!("1%"), 1)] {
        let mut world = with_object(json!({"rollout": {"maxUnavailable": size}}));
        world.remove_node("work-1");
        world.remove_node("work-2");
        for node in &nodes {
            world.add_node(node, &[]);
        }
        let mut largest = 0;
        world.settle(|world, _| {
            largest =
                largest.max(world.cluster.nodes.values().filter(|node| node.handover.is_some()).count());
        });
        assert_eq!(largest, expected);
        assert_eq!(phase(&world), Phase::Ready);
    }
}

/// The actions when the last node without an agent gets one.
fn over(node: &str) -> [String; 5] {
    [
        "apply-images daemonset/kube-system/proxy-agent-images-default".to_owned(),
        format!("pull-images node/{node}"),
        format!("hand-over-node node/{node}"),
        format!("handed-over-node node/{node}"),
        "delete-images daemonset/kube-system/proxy-agent-images-default".to_owned(),
    ]
}

#[test]
fn nodes_that_join_leave_or_change_sides_are_handled() {
    let mut world = ready();
    world.add_node("work-3", &[]);
    assert_eq!(story(&mut world), over("work-3"));
    assert_eq!(phase(&world), Phase::Ready);

    world.node("work-3", |node| drop(node.labels.insert(INGRESS.to_owned(), String::new())));
    assert_eq!(
        story(&mut world),
        [
            "hand-back-node node/work-3",
            "handed-back-node node/work-3",
            "forget-node ingresssourcenode/work-3"
        ],
        "an ingress node is handed back"
    );
    world.node("work-3", |node| drop(node.labels.remove(INGRESS)));
    assert_eq!(story(&mut world), over("work-3"));

    world.remove_node("work-3");
    assert_eq!(story(&mut world), ["forget-node ingresssourcenode/work-3"]);
    assert_eq!(phase(&world), Phase::Ready);

    world.add_node("work-4", &[]);
    world.node("work-4", |node| node.ready = false);
    assert!(story(&mut world).is_empty());
    let (_, reason, message) = condition(&world, "AgentsReady");
    assert!(reason == "NodeNotReady" && message.contains("work-4"), "{message}");
}

#[test]
fn a_node_belongs_to_the_first_pool_that_matches_and_moves_when_that_changes() {
    let pools = json!([
        {"name": "a", "selector": {"matchLabels": {"pool": "a"}}},
        {"name": "rest", "selector": {}},
    ]);
    let mut world = with_object(json!({"nodePools": pools}));
    world.node("work-1", |node| drop(node.labels.insert("pool".to_owned(), "a".to_owned())));
    world.settle(|_, _| {});
    let pool = |world: &World, node: &str| world.cluster.nodes[node].pool.clone().unwrap();
    assert_eq!((pool(&world, "work-1").as_str(), pool(&world, "work-2").as_str()), ("a", "rest"));
    world.node("work-1", |node| drop(node.labels.remove("pool")));
    assert_eq!(
        story(&mut world),
        [
            "apply-images daemonset/kube-system/proxy-agent-images-rest",
            "pull-images node/work-1",
            "hand-over-node node/work-1",
            "handed-over-node node/work-1",
            "delete-pool daemonset/kube-system/proxy-agent-a",
            "delete-images daemonset/kube-system/proxy-agent-images-rest",
        ]
    );
    assert_eq!(pool(&world, "work-1"), "rest");
}

#[test]
fn a_node_that_matches_no_pool_is_named() {
    let pools = json!([{"name": "a", "selector": {"matchLabels": {"pool": "a"}}}]);
    let mut world = with_object(json!({"nodePools": pools}));
    world.node("work-1", |node| drop(node.labels.insert("pool".to_owned(), "a".to_owned())));
    world.settle(|_, _| {});
    let (_, reason, message) = condition(&world, "AgentsReady");
    assert!(reason == "NodeWithoutPool" && message.contains("work-2"), "{message}");
    assert_eq!(state(&world), ServiceState::Waiting);
}
