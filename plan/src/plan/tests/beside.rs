//! Mode Beside: single situations, each with its expected outcome.

use isp_api::preserve::{Mode, Phase, ServiceState, TrafficPolicy};
use k8s_openapi::jiff::SignedDuration;
use serde_json::json;

use super::frontend::{condition, phase, ready, spec, state, story, web, with_object, world};
use super::world::{INGRESS, World};
use crate::cluster::Key;

const LABEL: &str = "service.kubernetes.io/service-proxy-name";

fn beside() -> World {
    let mut world = with_object(json!({"mode": "Beside"}));
    world.settle(|_, _| {});
    assert_eq!(phase(&world), Phase::Ready, "{:?}", world.cluster.objects["web"].status);
    world
}

fn change_mode(world: &mut World, mode: Mode) {
    world.object("web", |object| object.spec.mode = mode);
}

#[test]
fn the_way_on_and_the_way_off_step_by_step() {
    let mut world = with_object(json!({"mode": "Beside"}));
    let (before, nodes) = (world.cluster.services[&web()].clone(), world.cluster.nodes.clone());
    let kube_proxy = world.cluster.daemon_sets.clone();
    assert_eq!(
        story(&mut world),
        [
            "hold-object ingresssourcepreserve/web",
            "apply-agent-account serviceaccount/kube-system/proxy-agent",
            "apply-beside daemonset/kube-system/proxy-agent-beside",
            "label-service service/web/frontend",
            "take-over-service service/web/frontend",
            "localise-service service/web/frontend",
        ]
    );
    assert_eq!(phase(&world), Phase::Ready);
    let status = world.cluster.objects["web"].status.clone().unwrap();
    let summary = status.summary.unwrap();
    assert_eq!((summary.services.as_str(), summary.nodes.as_str()), ("1/1", "3/3"));
    assert_eq!(status.node_pools[0].name, "beside");
    assert_eq!(status.kube_proxy, None);
    let same = |world: &World| {
        let versions = |nodes: &std::collections::BTreeMap<String, crate::cluster::Node>| {
            nodes.values().map(|node| node.identity.clone()).collect::<Vec<_>>()
        };
        assert_eq!(versions(&world.cluster.nodes), versions(&nodes), "no node is written to");
        let key = World::kube_proxy_key();
        assert_eq!(world.cluster.daemon_sets[&key].identity, kube_proxy[&key].identity);
    };
    same(&world);

    world.delete_object("web");
    assert_eq!(
        story(&mut world),
        [
            "return-policy service/web/frontend",
            "give-back-service service/web/frontend",
            "release-service service/web/frontend",
            "delete-beside daemonset/kube-system/proxy-agent-beside",
            "forget-node ingresssourcenode/edge.beside",
            "forget-node ingresssourcenode/work-1.beside",
            "forget-node ingresssourcenode/work-2.beside",
            "delete-agent-account serviceaccount/kube-system/proxy-agent",
            "let-object-go ingresssourcepreserve/web",
        ]
    );
    same(&world);
    let after = &world.cluster.services[&web()];
    assert_eq!((after.policy, &after.labels, &after.owners), (before.policy, &before.labels, &before.owners));
}

#[test]
fn it_works_without_any_kube_proxy() {
    let mut world = with_object(json!({"mode": "Beside"}));
    world.cluster.daemon_sets.clear();
    world.cluster.configurations.clear();
    world.settle(|_, _| {});
    assert_eq!(phase(&world), Phase::Ready);
    world.delete_object("web");
    world.settle(|_, _| {});
    assert!(world.cluster.objects.is_empty());
}

#[test]
fn kube_proxies_have_half_a_minute_to_serve_a_service_again_before_its_agents_leave_it() {
    let mut world = beside();
    world.delete_object("web");
    let (mut given_back, mut released) = (None, None);
    world.settle(|world, action| match action.kind() {
        "give-back-service" => given_back = Some(world.now),
        "release-service" => released = Some(world.now),
        _ => {}
    });
    let waited = released.unwrap().duration_since(given_back.unwrap());
    assert!(waited >= SignedDuration::from_secs(30), "{waited:?}");
}

#[test]
fn no_kube_proxy_skips_a_service_that_a_node_does_not_serve() {
    let mut world = with_object(json!({"mode": "Beside"}));
    world.break_agent("work-1");
    world.settle(|_, _| {});
    let service = &world.cluster.services[&web()];
    assert_eq!((service.is_taken_over(), service.policy), (false, Some(TrafficPolicy::Cluster)));
    let (status, reason, message) = condition(&world, "AgentsReady");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "WaveFailed"));
    assert!(message.contains("work-1") && message.contains("ImagePullBackOff"), "{message}");
    world.broken.clear();
    world.settle(|_, _| {});
    assert_eq!(phase(&world), Phase::Ready);
}

#[test]
fn another_proxys_service_is_a_conflict_and_never_forced() {
    for policy in ["Report", "Force"] {
        let mut world = with_object(json!({"mode": "Beside", "conflictPolicy": policy}));
        world.set_proxy_name(&web(), Some("cilium"));
        assert_eq!(story(&mut world), ["hold-object ingresssourcepreserve/web"], "{policy}");
        let (status, reason, message) = condition(&world, "Conflict");
        assert_eq!((status.as_str(), reason.as_str()), ("True", "FieldDeclared"));
        for part in ["helm", LABEL, "cilium", "web/frontend", "spec.services"] {
            assert!(message.contains(part), "{message}");
        }
        world.set_proxy_name(&web(), None);
        world.settle(|_, _| {});
        assert_eq!(phase(&world), Phase::Ready);
    }
}

#[test]
fn our_own_value_set_by_somebody_else_is_a_conflict_because_deletion_could_not_restore_it() {
    let mut world = with_object(json!({"mode": "Beside"}));
    world.set_proxy_name(&web(), Some("ingress-source-preserve"));
    assert_eq!(story(&mut world), ["hold-object ingresssourcepreserve/web"]);
    assert_eq!(phase(&world), Phase::Conflict);
}

#[test]
fn a_label_that_is_replaced_later_is_a_conflict_and_the_agents_go_on_serving() {
    let mut world = beside();
    world.set_proxy_name(&web(), Some("cilium"));
    world.settle(|_, _| {});
    assert_eq!((phase(&world), state(&world)), (Phase::Conflict, ServiceState::Conflict));
    assert_eq!(world.cluster.services[&web()].labels[LABEL], "cilium");
    let report = &world.cluster.reports["work-1.beside"];
    assert!(report.acknowledged.values().any(|said| said.services.contains(&web())));
}

#[test]
fn a_label_that_is_removed_is_set_once_more_and_then_not_fought_over() {
    let mut world = beside();
    world.set_proxy_name(&web(), None);
    assert_eq!(story(&mut world), ["take-over-service service/web/frontend"]);
    assert_eq!(phase(&world), Phase::Ready);
    world.set_proxy_name(&web(), None);
    assert_eq!(story(&mut world), [""; 0]);
    let (status, _, message) = condition(&world, "Conflict");
    assert_eq!(status, "True");
    assert!(message.contains(LABEL) && message.contains("keeps reverting"), "{message}");
    // It is served by kube-proxy and by the agents, with its policy.
    world.delete_object("web");
    world.settle(|_, _| {});
    assert!(world.cluster.objects.is_empty());
}

#[test]
fn a_node_that_joins_gets_its_agent_before_it_counts_as_a_way_in() {
    let mut world = beside();
    world.break_agent("edge-2");
    world.add_node("edge-2", &[(INGRESS, "")]);
    world.set_endpoints(&web(), "edge-2", 1);
    world.set_endpoints(&web(), "edge", 0);
    world.settle(|_, _| {});
    // Its agent does not serve, so no ingress node does.
    assert_eq!(state(&world), ServiceState::Open);
    let (_, _, message) = condition(&world, "AgentsReady");
    assert!(message.contains("edge-2"), "{message}");
    world.broken.clear();
    world.settle(|_, _| {});
    assert_eq!((phase(&world), state(&world)), (Phase::Ready, ServiceState::Preserved));
}

#[test]
fn an_ingress_node_whose_agent_ends_keeps_serving_and_is_reported() {
    let mut world = beside();
    world.break_agent("edge");
    world.settle(|_, _| {});
    assert_eq!(state(&world), ServiceState::Preserved, "its rules stay");
    let (status, reason, message) = condition(&world, "Degraded");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "AgentNotReady"));
    assert!(message.contains("ingress node edge") && message.contains("rules stay"), "{message}");
    assert_eq!(condition(&world, "AgentsReady").0, "False");
}

#[test]
fn the_last_ingress_node_that_serves_stays_one() {
    let mut world = beside();
    world.break_agent("edge-2");
    world.add_node("edge-2", &[(INGRESS, "")]);
    world.set_endpoints(&web(), "edge-2", 1);
    world.node("edge", |node| node.labels.clear());
    world.settle(|_, _| {});
    let listed = |world: &World| world.cluster.objects["web"].status.clone().unwrap().ingress_nodes.unwrap();
    assert_eq!(listed(&world), ["edge", "edge-2"], "edge-2 has an endpoint and does not serve");
    assert_eq!(condition(&world, "Degraded").1, "LastIngressNode");
    world.broken.clear();
    world.settle(|_, _| {});
    assert_eq!(listed(&world), ["edge-2"]);
    assert_eq!(phase(&world), Phase::Ready);
}

#[test]
fn without_an_ingress_endpoint_every_node_shows_the_service_and_kube_proxies_still_skip_it() {
    for (policy, state_then, policy_then) in [
        ("KeepLocal", ServiceState::Open, TrafficPolicy::Local),
        ("FallBack", ServiceState::FellBack, TrafficPolicy::Cluster),
    ] {
        let mut world = with_object(json!({"mode": "Beside", "whenNoIngressEndpoint": policy}));
        world.settle(|_, _| {});
        world.set_endpoints(&web(), "edge", 0);
        world.set_endpoints(&web(), "work-1", 1);
        world.settle(|_, _| {});
        let service = &world.cluster.services[&web()];
        assert_eq!((state(&world), service.policy), (state_then, Some(policy_then)));
        assert!(service.is_taken_over() && !service.labels.contains_key("sourcepreserve.io/preserve"));
        world.set_endpoints(&web(), "edge", 1);
        world.settle(|_, _| {});
        assert_eq!((phase(&world), state(&world)), (Phase::Ready, ServiceState::Preserved));
    }
}

#[test]
fn from_filter_to_beside_both_serve_until_kube_proxies_skip_the_service() {
    let mut world = ready();
    change_mode(&mut world, Mode::Beside);
    assert_eq!(
        story(&mut world),
        [
            "apply-beside daemonset/kube-system/proxy-agent-beside",
            "take-over-service service/web/frontend",
            "hand-back-node node/work-1",
            "handed-back-node node/work-1",
            "forget-node ingresssourcenode/work-1",
            "hand-back-node node/work-2",
            "handed-back-node node/work-2",
            "forget-node ingresssourcenode/work-2",
            "delete-pool daemonset/kube-system/proxy-agent-default",
            "release-kube-proxy daemonset/kube-system/kube-proxy",
        ]
    );
    assert_eq!(phase(&world), Phase::Ready, "{:?}", world.cluster.objects["web"].status);
}

#[test]
fn from_beside_to_filter_the_rollout_is_complete_before_kube_proxies_get_the_service_back() {
    let mut world = beside();
    change_mode(&mut world, Mode::Filter);
    assert_eq!(
        story(&mut world),
        [
            "apply-pool daemonset/kube-system/proxy-agent-default",
            "apply-images daemonset/kube-system/proxy-agent-images-default",
            "keep-kube-proxy-off daemonset/kube-system/kube-proxy",
            "pull-images node/work-1",
            "hand-over-node node/work-1",
            "handed-over-node node/work-1",
            "pull-images node/work-2",
            "hand-over-node node/work-2",
            "handed-over-node node/work-2",
            "delete-images daemonset/kube-system/proxy-agent-images-default",
            "give-back-service service/web/frontend",
            "given-back-service service/web/frontend",
            "delete-beside daemonset/kube-system/proxy-agent-beside",
            "forget-node ingresssourcenode/edge.beside",
            "forget-node ingresssourcenode/work-1.beside",
            "forget-node ingresssourcenode/work-2.beside",
        ]
    );
    assert_eq!(phase(&world), Phase::Ready, "{:?}", world.cluster.objects["web"].status);
    world.delete_object("web");
    world.settle(|_, _| {});
    assert!(world.cluster.objects.is_empty() && !world.cluster.daemon_sets.values().any(|set| set.made));
}

#[test]
fn from_beside_to_filter_the_agents_go_on_until_kube_proxies_have_had_half_a_minute() {
    let mut world = beside();
    change_mode(&mut world, Mode::Filter);
    let (mut given_back, mut recorded) = (None, None);
    world.settle(|world, action| {
        match action.kind() {
            "give-back-service" => given_back = Some(world.now),
            "given-back-service" => recorded = Some(world.now),
            _ => {}
        }
        if given_back.is_some() && recorded.is_none() {
            for node in ["edge", "work-1", "work-2"] {
                let report = &world.cluster.reports[&format!("{node}.beside")];
                let serves = report.acknowledged.values().any(|said| said.services.contains(&web()));
                assert!(serves, "{action}: {node} has stopped serving");
            }
        }
    });
    let waited = recorded.unwrap().duration_since(given_back.unwrap());
    assert!(waited >= SignedDuration::from_secs(30), "{waited:?}");
}

#[test]
fn an_object_that_is_deleted_between_two_modes_leaves_nothing() {
    for (from, to) in [(Mode::Filter, Mode::Beside), (Mode::Beside, Mode::Filter)] {
        for rounds in 1..14 {
            let mut world = if from == Mode::Filter { ready() } else { beside() };
            change_mode(&mut world, to);
            for _ in 0..rounds {
                world.controllers();
                world.step();
            }
            world.delete_object("web");
            world.settle(super::interlocks::allowed);
            let left = world.cluster.daemon_sets.values().filter(|set| set.made).count();
            assert_eq!((world.cluster.objects.len(), left), (0, 0), "{from:?} {rounds}");
            let service = &world.cluster.services[&web()];
            assert!(service.labels.is_empty() && service.record.is_none(), "{from:?} {rounds}: {service:?}");
        }
    }
}

#[test]
fn objects_of_both_modes_share_a_cluster() {
    let mut world = world();
    let other = Key::new("web", "other");
    world.add_service(&other, "kubectl-create");
    world.set_endpoints(&other, "edge", 1);
    world.add_object("web", &spec(json!({"mode": "Beside"})));
    world.add_object("filtered", &spec(json!({"services": [{"namespace": "web", "name": "other"}]})));
    world.settle(super::interlocks::allowed);
    assert_eq!(phase(&world), Phase::Ready);
    let status = world.cluster.objects["filtered"].status.as_ref().unwrap();
    assert_eq!(status.phase, Some(Phase::Ready));
    assert!(
        world.cluster.services[&web()].is_taken_over() && !world.cluster.services[&other].is_taken_over()
    );
    world.delete_object("web");
    world.settle(super::interlocks::allowed);
    assert!(!world.cluster.daemon_sets.contains_key(&Key::new("kube-system", "proxy-agent-beside")));
    assert!(world.cluster.nodes["work-1"].pool.is_some(), "the other object still needs its agents");
}

#[test]
fn what_is_retained_is_served_by_kube_proxy_with_its_policy() {
    let mut world = with_object(json!({"mode": "Beside", "deletionPolicy": "Retain"}));
    world.settle(|_, _| {});
    world.delete_object("web");
    world.settle(super::interlocks::allowed);
    assert!(world.cluster.objects.is_empty());
    let service = &world.cluster.services[&web()];
    assert_eq!((service.is_taken_over(), service.policy), (false, Some(TrafficPolicy::Local)));
    assert!(service.labels.contains_key("sourcepreserve.io/preserve"));
    assert!(!world.cluster.daemon_sets.values().any(|set| set.made));

    world.add_object("web", &spec(json!({"mode": "Beside"})));
    world.settle(super::interlocks::allowed);
    assert_eq!(phase(&world), Phase::Ready);
    world.delete_object("web");
    world.settle(super::interlocks::allowed);
    assert!(world.cluster.objects.is_empty() && world.cluster.services[&web()].labels.is_empty());
}

#[test]
fn a_service_whose_object_vanishes_is_given_back_before_its_agents_leave() {
    let mut world = beside();
    world.cluster.objects.clear();
    let told = story(&mut world);
    let place = |step: &str| told.iter().position(|told| told.starts_with(step)).unwrap();
    assert!(place("give-back-service") < place("release-service"), "{told:?}");
    assert!(place("release-service") < place("delete-beside"), "{told:?}");
}

#[test]
fn a_paused_rollout_does_not_replace_agents() {
    let mut world = with_object(json!({"mode": "Beside", "rollout": {"maxUnavailable": 1}}));
    world.settle(|_, _| {});
    world.object("web", |object| object.spec.rollout.paused = true);
    world.settle(|_, _| {});
    world.settings.agent_image = "agent:2".to_owned();
    assert_eq!(story(&mut world), [""; 0]);
    world.object("web", |object| object.spec.rollout.paused = false);
    assert_eq!(story(&mut world), ["apply-beside daemonset/kube-system/proxy-agent-beside"]);
}

#[test]
fn nodes_that_can_have_no_agent_are_left_out() {
    let mut world = with_object(json!({"mode": "Beside"}));
    world.add_node("virtual", &[("type", "virtual-kubelet")]);
    world.add_node("windows", &[("kubernetes.io/os", "windows")]);
    world.settle(|_, _| {});
    assert_eq!(phase(&world), Phase::Ready);
    let left_out = world.cluster.objects["web"].status.clone().unwrap().left_out.unwrap();
    assert_eq!(left_out.nodes, ["virtual", "windows"]);
}
