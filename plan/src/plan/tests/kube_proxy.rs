//! The cluster's own kube-proxy: managers that keep removing our affinity, and nodes on which it
//! never runs.

use isp_api::preserve::Phase;
use k8s_openapi::api::core::v1::NodeSelectorTerm;
use k8s_openapi::jiff::SignedDuration;
use serde_json::json;

use super::frontend::{condition, phase, ready, with_object};
use super::ingress::is_reachable;
use super::world::World;
use crate::cluster::{Key, Pod, Taint};
use crate::plan::kube_proxy::is_kept_off;
use crate::simulate::set_terms;

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
