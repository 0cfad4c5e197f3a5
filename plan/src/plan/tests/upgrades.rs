//! Agents of other revisions, agents that stop, and agents that must be restarted.

use isp_api::preserve::Phase;
use k8s_openapi::jiff::SignedDuration;
use serde_json::json;

use super::frontend::{condition, phase, ready, story, with_object};
use super::world::World;
use crate::cluster::{Key, Pod, PodRole};

#[test]
fn an_upgrade_whose_images_cannot_be_pulled_takes_no_node() {
    let mut world = ready();
    let revision = world.cluster.nodes["work-1"].revision.clone();
    for node in ["work-1", "work-2"] {
        world.unpullable.insert(node.to_owned(), "container proxy-agent: ErrImagePull".to_owned());
    }
    world.settings.agent_image = "agent:2".to_owned();
    let told = story(&mut world);
    assert!(!told.iter().any(|action| action.starts_with("hand-over")), "{told:?}");
    assert_eq!(world.cluster.nodes["work-1"].revision, revision);
    let (status, reason, message) = condition(&world, "AgentsReady");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "WaveFailed"));
    assert!(message.contains("ErrImagePull") && message.contains("work-1"), "{message}");
    assert_eq!(phase(&world), Phase::Degraded);

    world.unpullable.clear();
    world.settings.agent_image = "agent:3".to_owned();
    world.settle(|_, _| {});
    assert_eq!(phase(&world), Phase::Ready);
    assert_ne!(world.cluster.nodes["work-1"].revision, revision);
}

#[test]
fn an_upgrade_that_does_not_start_goes_back_to_the_revision_before_and_takes_no_other_node() {
    let mut world = ready();
    let revision = world.cluster.nodes["work-1"].revision.clone();
    world.settings.agent_image = "agent:2".to_owned();
    // The agent crashes in its new revision only.
    for _ in 0..2000 {
        let new = world.cluster.nodes["work-1"].revision != revision;
        world.broken.clear();
        if new {
            world.break_agent("work-1");
        }
        world.controllers();
        world.step();
        world.now += SignedDuration::from_secs(1);
    }
    world.broken.clear();
    for node in ["work-1", "work-2"] {
        assert_eq!(world.cluster.nodes[node].revision, revision, "{node}");
        assert!(world.cluster.nodes[node].handover.is_none(), "{node}");
    }
    let (_, reason, message) = condition(&world, "AgentsReady");
    assert!(reason == "WaveFailed" && message.contains("work-1"), "{message}");
    assert_eq!(condition(&world, "Ready").0, "False");
}

#[test]
fn a_paused_wave_goes_on_with_another_revision() {
    let rollout = json!({"maxUnavailable": 1, "progressDeadlineSeconds": 60, "onFailure": "Pause"});
    let mut world = with_object(json!({"rollout": rollout}));
    world.break_agent("work-1");
    world.settle(|_, _| {});
    assert_eq!(condition(&world, "AgentsReady").1, "WaveFailed");
    let revision = world.cluster.nodes["work-1"].revision.clone();
    world.settings.agent_image = "agent:2".to_owned();
    while world.cluster.nodes["work-1"].revision == revision {
        world.controllers();
        world.step();
        world.now += SignedDuration::from_secs(1);
    }
    world.broken.clear();
    world.settle(|_, _| {});
    assert_eq!(phase(&world), Phase::Ready);
}

#[test]
fn an_agent_that_stops_long_after_it_came_is_not_ready() {
    let mut world = ready();
    world.now += SignedDuration::from_hours(100);
    world.break_agent("work-2");
    world.controllers();
    world.step();
    let (status, reason, message) = condition(&world, "AgentsReady");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "AgentNotReady"));
    assert!(message.contains("work-2"), "{message}");
    assert_eq!(condition(&world, "Ready").0, "False");
    world.settle(|_, _| {});
    assert_eq!(phase(&world), Phase::Degraded);
    world.broken.clear();
    world.settle(|_, _| {});
    assert_eq!(phase(&world), Phase::Ready);
}

#[test]
fn an_agent_beside_which_kube_proxy_ran_is_started_anew_before_its_word_counts() {
    let mut world = ready();
    world.lingering.insert("work-1".to_owned());
    world.controllers();
    world.step();
    assert_eq!(condition(&world, "Acknowledged").1, "KubeProxyRuns");
    world.lingering.clear();
    world.controllers();
    world.step();
    assert_eq!(condition(&world, "Acknowledged").0, "False", "its rules are still there");
    let told = story(&mut world);
    assert_eq!(
        told,
        ["forget-node ingresssourcenode/work-1", "start-agent node/work-1", "handed-over-node node/work-1"]
    );
    assert_eq!(phase(&world), Phase::Ready);
}

#[test]
fn an_agent_that_cannot_be_stopped_because_its_node_is_down_holds_up_nobody_else() {
    let mut world = ready();
    world.lingering.insert("work-1".to_owned());
    while world.cluster.nodes["work-1"].handover.is_none() {
        world.controllers();
        world.step();
    }
    world.lingering.clear();
    while world.cluster.nodes["work-1"].revision.is_some() {
        world.controllers();
        world.step();
    }
    // Its pod never terminates, and its report remains.
    world.node("work-1", |node| node.ready = false);
    world.add_node("work-3", &[]);
    let agent =
        world.cluster.daemon_sets.keys().find(|key| key.name.starts_with("proxy-agent-default")).cloned();
    for _ in 0..60 {
        world.controllers();
        let role = Some(PodRole::Agent { pool: "default".to_owned(), revision: "former".to_owned() });
        let pod =
            Pod { daemon_set: agent.clone().unwrap(), role, node: "work-1".to_owned(), ..Pod::default() };
        world.cluster.pods.insert(Key::new("kube-system", "proxy-agent-on-work-1"), pod);
        world.step();
        world.now += SignedDuration::from_secs(1);
    }
    assert!(world.cluster.nodes["work-3"].pool.is_some(), "another node gets its agent");
}

#[test]
fn a_retained_pool_follows_kube_proxy() {
    let mut world = with_object(json!({"deletionPolicy": "Retain"}));
    world.settle(|_, _| {});
    world.delete_object("web");
    world.settle(|_, _| {});
    assert!(world.cluster.objects.is_empty());
    let revision = world.cluster.nodes["work-1"].revision.clone();
    let set = world.cluster.daemon_sets.get_mut(&World::kube_proxy_key()).unwrap();
    set.object.spec.template.spec.as_mut().unwrap().containers[0].image = Some("kube-proxy:2".to_owned());
    world.settle(|_, _| {});
    for node in ["work-1", "work-2"] {
        assert_ne!(world.cluster.nodes[node].revision, revision, "{node}");
        assert!(world.cluster.nodes[node].handover.is_none(), "{node}");
    }
    assert_eq!(world.cluster.daemon_sets.values().filter(|set| set.made).count(), 1);
}
