//! Forged writes as the operator: DaemonSets, Services, annotations, labels and clocks that must
//! not be trusted.

use isp_api::preserve::{Phase, TrafficPolicy};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::frontend::{phase, ready, story, web, with_object};
use super::world::{World, kube_proxy};
use crate::cluster::{DaemonSet, Key};
use crate::observe;
use crate::ownership::Owner;
use crate::plan::kube_proxy::is_kept_off;
use crate::record::{Handover, ServiceRecord};

/// A foreign DaemonSet with our label.
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

/// A Service forged as the operator's.
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
            // Its writer keeps restoring it.
            if action.target().key.namespace != "tenant" {
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

/// Anyone who may edit an object may empty its managedFields. Then nothing shows who wrote which
/// field.
#[test]
fn a_service_whose_managed_fields_were_emptied_is_put_back_all_the_same() {
    let mut world = ready();
    world.service(&web(), |service| service.owners.clear());
    world.settle(|_, _| {});
    assert_eq!(phase(&world), Phase::Ready);
    world.delete_object("web");
    world.settle(|_, _| {});
    assert!(world.cluster.objects.is_empty());
    let service = &world.cluster.services[&web()];
    assert_eq!(service.policy, Some(TrafficPolicy::Cluster));
    assert!(!service.labels.contains_key("sourcepreserve.io/preserve"), "{:?}", service.labels);
    assert_eq!(service.record, None);
}

#[test]
fn a_kube_proxy_whose_managed_fields_were_emptied_is_put_back_all_the_same() {
    let mut world = ready();
    let before = world.cluster.daemon_sets[&World::kube_proxy_key()].object.spec.template.spec.clone();
    let set = world.cluster.daemon_sets.get_mut(&World::kube_proxy_key()).unwrap();
    set.owners.clear();
    world.delete_object("web");
    world.settle(|_, _| {});
    assert!(world.cluster.objects.is_empty(), "the deletion does not hang");
    let set = &world.cluster.daemon_sets[&World::kube_proxy_key()];
    assert_eq!(set.record, None);
    assert_ne!(set.object.spec.template.spec, before);
    assert!(!is_kept_off(set));
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
    // Another replica takes over, with a clock one hour ahead.
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

/// A node's own kubelet sets the pool label, as the operator.
fn relabel(world: &mut World, node: &str) {
    world.node(node, |node| {
        for label in ["sourcepreserve.io/agent-pool", "sourcepreserve.io/agent-revision"] {
            node.labels.insert(label.to_owned(), "default".to_owned());
        }
        node.pool = Some("default".to_owned());
        node.revision = Some("default".to_owned());
    });
}

fn live_while_edge_relabels_itself(world: &mut World) {
    for _ in 0..300 {
        relabel(world, "edge");
        world.controllers();
        world.step();
        world.now += SignedDuration::from_secs(2);
    }
}

#[test]
fn a_node_that_keeps_putting_the_pool_label_on_itself_holds_up_nobody_else() {
    // During the rollout: edge needs no agent.
    let mut world = with_object(json!({"rollout": {"maxUnavailable": 1, "progressDeadlineSeconds": 60}}));
    live_while_edge_relabels_itself(&mut world);
    for node in ["work-1", "work-2"] {
        assert!(
            world.cluster.nodes[node].pool.is_some() && world.cluster.nodes[node].handover.is_none(),
            "{node}"
        );
    }
    // During the hand-back: edge comes first.
    world.delete_object("web");
    live_while_edge_relabels_itself(&mut world);
    for node in ["work-1", "work-2"] {
        assert!(world.cluster.nodes[node].pool.is_none(), "{node}");
    }
}

/// The node keeps restoring its label without the handover annotation, and a forged Service delays
/// each wave.
#[test]
fn a_node_that_keeps_restoring_itself_and_a_forged_service_together_hold_up_nobody_else() {
    let mut world = with_object(json!({"rollout": {"maxUnavailable": 1, "progressDeadlineSeconds": 60}}));
    world.settle(|_, _| {});
    world.delete_object("web");
    for number in 0..150 {
        // Only sometimes, so that the node is seen as handed back in between.
        if number % 3 == 0 {
            world.node("edge", |node| {
                node.labels.insert("sourcepreserve.io/agent-pool".to_owned(), "default".to_owned());
                (node.pool, node.handover) = (Some("default".to_owned()), None);
            });
        }
        forge(&mut world, &Key::new("tenant", "forged"), "gone");
        world.controllers();
        world.step();
        world.now += SignedDuration::from_secs(2);
    }
    for node in ["work-1", "work-2"] {
        assert!(world.cluster.nodes[node].pool.is_none(), "{node}");
    }
    assert!(world.cluster.objects.is_empty(), "and its object goes");
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
            if action.target().key.namespace != "tenant" {
                world.carry_out(&action);
            }
        }
        world.now += SignedDuration::from_secs(2);
    }
    assert!(world.cluster.nodes.values().all(|node| node.pool.is_none()));
}
