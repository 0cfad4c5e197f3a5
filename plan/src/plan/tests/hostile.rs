//! What a cluster can do to the operator: the last of something taken away, things of ours deleted or forged, upgrades that cannot start.

use isp_api::preserve::{Phase, ServiceState, TrafficPolicy};
use isp_api::view::View;
use k8s_openapi::api::core::v1::NodeSelectorTerm;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::frontend::{condition, phase, ready, spec, state, story, web, with_object};
use super::world::{INGRESS, World, kube_proxy};
use crate::cluster::{DaemonSet, Key, Pod, Taint};
use crate::observe;
use crate::ownership::Owner;
use crate::plan::kube_proxy::is_kept_off;
use crate::record::{Handover, ServiceRecord};
use crate::simulate::set_terms;

fn unlabel(world: &mut World, node: &str) {
    world.node(node, |node| drop(node.labels.remove(INGRESS)));
}

fn label(world: &mut World, node: &str) {
    world.node(node, |node| drop(node.labels.insert(INGRESS.to_owned(), String::new())));
}

/// Whether somebody outside is answered: a node with an endpoint shows the Service in full.
fn is_reachable(world: &World) -> bool {
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

    // Another node is made an ingress node, and gets an endpoint: the former one goes over after that.
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
    // `other` has its ingress elsewhere, so that edge has an agent, too.
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
    // It crashes in its new revision only.
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

pub(super) fn remove_affinity(world: &mut World) {
    let version = world.version();
    let set = world.cluster.daemon_sets.get_mut(&World::kube_proxy_key()).unwrap();
    set_terms(&mut set.object, Vec::new());
    set.owners.clear();
    set.record = None;
    set.last_writer = Some("addon-manager".to_owned());
    set.identity.version = version;
}

#[test]
fn who_keeps_taking_the_affinity_off_kube_proxy_is_named_and_not_fought() {
    let mut world = ready();
    let kept = |world: &World| is_kept_off(&world.cluster.daemon_sets[&World::kube_proxy_key()]);
    remove_affinity(&mut world);
    world.settle(|_, _| {});
    assert!(kept(&world), "followed once");
    assert_eq!(phase(&world), Phase::Ready);
    remove_affinity(&mut world);
    world.settle(|_, _| {});
    assert!(!kept(&world), "and not again");
    let (status, reason, message) = condition(&world, "Conflict");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "KubeProxyNotKeptOff"));
    assert!(message.contains("addon-manager") && message.contains("kube-system/kube-proxy"), "{message}");
    assert!(world.cluster.nodes.values().all(|node| node.pool.is_none()), "one kube-proxy on each node");
    assert!(is_reachable(&world));
    assert!(world.plan().actions.is_empty());

    world.object("web", |_| {});
    world.settle(|_, _| {});
    assert_eq!(phase(&world), Phase::Ready, "a changed object is tried anew");
}

#[test]
fn an_upgrade_of_the_cluster_once_in_a_while_is_no_fight() {
    let mut world = ready();
    for _ in 0..5 {
        world.plan();
        world.now += SignedDuration::from_hours(1);
        remove_affinity(&mut world);
        world.settle(|_, _| {});
        assert_eq!(phase(&world), Phase::Ready);
    }
}

#[test]
fn nodes_that_never_run_this_kube_proxy_are_left_out_and_named() {
    let mut world = with_object(json!({}));
    let selector = [("kubernetes.io/os".to_owned(), "linux".to_owned())];
    let set = world.cluster.daemon_sets.get_mut(&World::kube_proxy_key()).unwrap();
    set.object.spec.template.spec.as_mut().unwrap().node_selector = Some(selector.into());
    for node in ["edge", "work-1", "work-2"] {
        world.node(node, |node| drop(node.labels.insert("kubernetes.io/os".to_owned(), "linux".to_owned())));
    }
    world.add_node("windows", &[("kubernetes.io/os", "windows")]);
    world.add_node("virtual", &[("kubernetes.io/os", "linux"), ("type", "virtual-kubelet")]);
    world.add_node("tainted", &[("kubernetes.io/os", "linux")]);
    let taint = Taint { key: "pool".to_owned(), value: "gpu".to_owned(), effect: "NoSchedule".to_owned() };
    world.node("tainted", |node| node.taints.push(taint));
    world.settle(|_, _| {});
    assert_eq!(phase(&world), Phase::Ready);
    let left_out = world.cluster.objects["web"].status.as_ref().unwrap().left_out.clone().unwrap();
    assert_eq!(
        (left_out.count, left_out.nodes),
        (3, ["tainted", "virtual", "windows"].map(str::to_owned).to_vec())
    );
    assert!(world.cluster.nodes["windows"].pool.is_none());
}

#[test]
fn a_taint_that_comes_later_takes_no_agent_away() {
    let mut world = ready();
    let taint = Taint { key: "pool".to_owned(), value: String::new(), effect: "NoSchedule".to_owned() };
    world.node("work-1", |node| node.taints.push(taint));
    world.step();
    assert!(world.cluster.nodes["work-1"].pool.is_some());
}

/// A DaemonSet with our label that somebody else made.
fn foreign(namespace: &str, name: &str) -> DaemonSet {
    let mut object = kube_proxy();
    object.metadata.namespace = Some(namespace.to_owned());
    object.metadata.name = Some(name.to_owned());
    object.metadata.labels = Some([("app.kubernetes.io/name".to_owned(), "proxy-agent".to_owned())].into());
    observe::daemon_set(&object).unwrap()
}

#[test]
fn daemon_sets_of_others_are_neither_deleted_nor_counted_whatever_their_labels() {
    for (namespace, name) in [("kube-system", "proxy-agent-default"), ("tenant", "kube-proxy")] {
        let mut world = with_object(json!({}));
        let identity = world.identity();
        let set = DaemonSet { identity, ..foreign(namespace, name) };
        world.cluster.daemon_sets.insert(Key::new(namespace, name), set);
        world.settle(|_, _| {});
        assert_eq!(phase(&world), Phase::Ready, "{namespace}/{name}");
        world.delete_object("web");
        world.settle(|_, _| {});
        assert!(world.cluster.objects.is_empty(), "{namespace}/{name}");
        assert!(world.cluster.daemon_sets.contains_key(&Key::new(namespace, name)), "{namespace}/{name}");
    }
}

#[test]
fn a_daemon_set_in_a_tenants_namespace_that_pretends_to_be_ours_holds_nothing_up() {
    let mut world = ready();
    let (made, identity) = (true, world.identity());
    let set = DaemonSet { identity, made, ..foreign("tenant", "proxy-agent-default-0123456789") };
    world.cluster.daemon_sets.insert(Key::new("tenant", "proxy-agent-default-0123456789"), set);
    world.delete_object("web");
    let told = story(&mut world);
    assert!(world.cluster.objects.is_empty());
    assert!(!told.iter().any(|action| action.contains("tenant")), "{told:?}");
}

/// A Service that somebody wrote in the operator's name.
pub(super) fn forge(world: &mut World, key: &Key, object: &str) {
    let record: ServiceRecord =
        serde_json::from_value(json!({"object": object, "policy": "Cluster", "generation": 1})).unwrap();
    world.add_service(key, "kubectl-create");
    world.service(key, |service| {
        service.record = Some(record);
        let us = Owner { manager: "sourcepreserve-operator".to_owned(), applies: true, ..Owner::default() };
        service.owners.push(us);
    });
}

#[test]
fn a_service_that_pretends_to_be_an_objects_neither_stalls_its_deletion_nor_skips_its_checks() {
    let forged = Key::new("tenant", "forged");
    let mut world = ready();
    forge(&mut world, &forged, "web");
    world.delete_object("web");
    for _ in 0..100 {
        world.controllers();
        for action in world.plan().actions {
            // Its writer puts it back again and again.
            if !action.target().contains("tenant") {
                world.carry_out(&action);
            }
        }
        world.now += SignedDuration::from_secs(2);
    }
    assert!(world.cluster.objects.is_empty());
    assert!(world.cluster.nodes.values().all(|node| node.pool.is_none()));

    let mut world = with_object(json!({"services": [
        {"namespace": "web", "name": "frontend"}, {"namespace": "web", "name": "forged"},
    ]}));
    world.set_endpoints(&web(), "edge", 0);
    forge(&mut world, &Key::new("web", "forged"), "web");
    world.settle(|_, _| {});
    assert!(world.cluster.nodes.values().all(|node| node.pool.is_none()), "the check has not passed");
}

#[test]
fn an_annotation_with_the_last_moment_of_all_ends_nothing() {
    for pool in [None, Some("default".to_owned())] {
        let mut world = ready();
        world.node("work-1", |node| {
            node.pool.clone_from(&pool);
            if pool.is_none() {
                node.labels.remove("sourcepreserve.io/agent-pool");
            }
            node.handover = Some(Handover::new("default", Timestamp::MAX));
        });
        world.settle(|_, _| {});
        assert_eq!(phase(&world), Phase::Ready);
    }
}

#[test]
fn a_leader_with_another_clock_waits_for_as_long_as_the_first() {
    let mut world = with_object(json!({"rollout": {"maxUnavailable": 1, "progressDeadlineSeconds": 60}}));
    world.break_agent("work-1");
    while world.cluster.nodes["work-1"].pool.is_none() {
        world.controllers();
        world.step();
    }
    // Another process takes over, an hour ahead.
    world.waits.replace(crate::waits::Waits::new());
    world.now += SignedDuration::from_hours(1);
    world.controllers();
    world.step();
    assert!(world.cluster.nodes["work-1"].pool.is_some(), "not late by its own clock");
    world.now += SignedDuration::from_secs(61);
    world.step();
    assert!(world.cluster.nodes["work-1"].pool.is_none());
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

#[test]
fn only_the_label_that_marks_services_is_returned_and_only_as_the_api_server_takes_it() {
    let returned = |annotation: Value| {
        let mut world = ready();
        let identity = world.cluster.services[&web()].identity.clone();
        let metadata = json!({"annotations": {"sourcepreserve.io/original": annotation.to_string()}});
        let read = observe::service(&serde_json::from_value(json!({"metadata": metadata})).unwrap());
        world.service(&web(), |service| service.record = read.record);
        assert_ne!(world.cluster.services[&web()].identity, identity);
        world.delete_object("web");
        let told = story(&mut world);
        assert!(world.cluster.objects.is_empty());
        told.into_iter().filter(|action| action.starts_with("return-")).collect::<Vec<_>>()
    };
    let record = |label: Value, owner: &str| json!({"object": "web", "policy": "Cluster", "policyOwner": owner, "generation": 1, "label": label});
    let label = |key: &str, value: &str, owner: &str| json!({"key": key, "value": value, "owner": owner});
    let all = ["return-policy service/web/frontend", "return-label service/web/frontend"];
    let key = "sourcepreserve.io/preserve";
    assert_eq!(returned(record(label(key, "theirs", "helm"), "helm")), all);
    let other = label("service.kubernetes.io/service-proxy-name", "none", "helm");
    assert_eq!(returned(record(other, "helm")), all[..1], "anybody could have any label set by the operator");
    assert_eq!(
        returned(record(label(key, "-no value-", "helm"), "helm")),
        all[..1],
        "it would be refused for ever"
    );
    for nobody in ["", "sourcepreserve-operator", "bell\u{7}", &"x".repeat(129)] {
        assert_eq!(returned(record(label(key, "theirs", nobody), nobody)), [""; 0], "{nobody:?}");
    }
}

#[test]
fn a_pod_of_somebody_elses_daemon_set_makes_no_node_one_that_needs_an_agent() {
    let mut world = with_object(json!({}));
    let taint = Taint { key: "os".to_owned(), value: "windows".to_owned(), effect: "NoSchedule".to_owned() };
    world.add_node("windows", &[]);
    world.node("windows", |node| node.taints.push(taint));
    let daemon_set = Key::new("tenant", "proxy-agent");
    for _ in 0..40 {
        world.controllers();
        let pod =
            Pod { daemon_set: daemon_set.clone(), node: "windows".to_owned(), ready: true, ..Pod::default() };
        world.cluster.pods.insert(Key::new("tenant", "proxy-agent-1"), pod);
        world.step();
        world.now += SignedDuration::from_secs(2);
    }
    assert_eq!(phase(&world), Phase::Ready);
}

#[test]
fn a_term_that_matches_no_node_still_matches_none_when_kube_proxy_is_kept_off() {
    let mut world = with_object(json!({}));
    let linux = json!({"matchExpressions": [{"key": "windows", "operator": "DoesNotExist"}]});
    let terms: Vec<NodeSelectorTerm> = serde_json::from_value(json!([{}, linux])).unwrap();
    let set = world.cluster.daemon_sets.get_mut(&World::kube_proxy_key()).unwrap();
    set_terms(&mut set.object, terms.clone());
    world.add_node("windows", &[("windows", "")]);
    world.settle(|_, _| {});
    assert_eq!(phase(&world), Phase::Ready);
    assert!(!world.cluster.pods.contains_key(&Key::new("kube-system", "kube-proxy-windows")));
    assert!(is_kept_off(&world.cluster.daemon_sets[&World::kube_proxy_key()]));
    world.delete_object("web");
    world.settle(|_, _| {});
    assert!(world.cluster.objects.is_empty());
}

/// A node's own kubelet puts the pool label on it, in the operator's name.
fn relabel(world: &mut World, node: &str) {
    world.node(node, |node| {
        for label in ["sourcepreserve.io/agent-pool", "sourcepreserve.io/agent-revision"] {
            node.labels.insert(label.to_owned(), "default".to_owned());
        }
        node.pool = Some("default".to_owned());
        node.revision = Some("default".to_owned());
    });
}

#[test]
fn a_node_that_keeps_putting_the_pool_label_on_itself_holds_up_nobody_else() {
    // On the way there: edge needs no agent.
    let mut world = with_object(json!({"rollout": {"maxUnavailable": 1, "progressDeadlineSeconds": 60}}));
    for _ in 0..300 {
        relabel(&mut world, "edge");
        world.controllers();
        world.step();
        world.now += SignedDuration::from_secs(2);
    }
    for node in ["work-1", "work-2"] {
        assert!(
            world.cluster.nodes[node].pool.is_some() && world.cluster.nodes[node].handover.is_none(),
            "{node}"
        );
    }
    // On the way back: edge is the first of them all.
    world.delete_object("web");
    for _ in 0..300 {
        relabel(&mut world, "edge");
        world.controllers();
        world.step();
        world.now += SignedDuration::from_secs(2);
    }
    for node in ["work-1", "work-2"] {
        assert!(world.cluster.nodes[node].pool.is_none(), "{node}");
    }
}

#[test]
fn services_that_are_forged_one_after_the_other_hold_up_the_way_back_for_as_long_as_one() {
    let mut world = ready();
    world.delete_object("web");
    for number in 0..120 {
        world.cluster.services.retain(|key, _| key.namespace != "tenant");
        forge(&mut world, &Key::new("tenant", format!("forged-{number}")), "gone");
        world.controllers();
        for action in world.plan().actions {
            if !action.target().contains("tenant") {
                world.carry_out(&action);
            }
        }
        world.now += SignedDuration::from_secs(2);
    }
    assert!(world.cluster.nodes.values().all(|node| node.pool.is_none()));
}
