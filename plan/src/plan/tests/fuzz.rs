//! Hostile annotations, labels, statuses, managedFields and whole objects, passed through `observe`
//! and `plan`: no panic, no write to foreign objects, and no delay for unaffected objects.
//!
//! `ISP_FUZZ_CASES` sets the number of cases, `ISP_FUZZ_SEED` the first seed.

mod dice;
mod judge;
mod objects;

use isp_api::preserve::Phase;
use isp_api::{IngressSourceNode, IngressSourcePreserve};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::core::DynamicObject;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::dice::Dice;
use self::judge::{Forged, is_ours};
use self::objects::US;
use super::frontend::{phase, ready, with_object};
use super::world::World;
use crate::cluster::{Key, Written};
use crate::observe;
use crate::own::OwnKind;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs each case by its seed. A failing case prints how to repeat it.
fn cases(share: u64, case: impl Fn(&mut Dice)) {
    let first = variable("ISP_FUZZ_SEED").unwrap_or_default();
    let count = variable("ISP_FUZZ_CASES").unwrap_or(10_000) / share;
    for seed in first..first + count {
        let _told = Seed(seed);
        case(&mut Dice::new(seed));
    }
}

struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to repeat it: ISP_FUZZ_SEED={}", self.0);
        }
    }
}

/// Parses the object as the API server would deliver it. None if it would be rejected.
fn read<T: DeserializeOwned>(object: Value) -> Option<T> {
    serde_json::from_value(object).ok()
}

/// Adds hostile objects to the cluster. Unless `concerns` is set, they are in other namespaces and
/// on nodes that need no agent.
fn write(dice: &mut Dice, world: &mut World, concerns: bool) -> Forged {
    let mut forged = Forged::default();
    for number in 0..=dice.below(5) {
        let name = format!("hostile-{}", number % 3);
        let namespace = if concerns { dice.pick(&["tenant", "web", "kube-system"]) } else { "tenant" };
        let us = dice.one_in(2);
        match dice.below(if concerns { 9 } else { 6 }) {
            0 => write_service(dice, world, namespace, &name, us),
            1 => write_node(dice, world, &name, us, concerns),
            2 => forged.daemon_sets.extend(write_daemon_set(dice, world, namespace, &name, us)),
            3 => write_pod(dice, world, namespace, &name, concerns),
            4 => write_slice(dice, world, namespace, &name),
            5 => write_admission(dice, world, &mut forged, us),
            6 => {
                let metadata = objects::metadata(dice, namespace, "kube-proxy", us);
                if let Some(map) = read(objects::config_map(dice, &metadata)) {
                    let key = Key::new(namespace, "kube-proxy");
                    world.cluster.configurations.insert(key, observe::configuration(&map));
                }
            }
            _ => {
                let metadata = objects::metadata(dice, "", &name, us);
                if let Some(object) = read(objects::preserve(dice, metadata)) {
                    world.cluster.objects.insert(name, object);
                }
            }
        }
    }
    forged
}

fn write_service(dice: &mut Dice, world: &mut World, namespace: &str, name: &str, us: bool) {
    // In the core's namespace, overwrite the core's own Service.
    let name = if namespace == "web" { "frontend" } else { name };
    let metadata = objects::metadata(dice, namespace, name, us);
    if let Some(service) = read(objects::service(dice, &metadata)) {
        world.cluster.services.insert(Key::new(namespace, name), observe::service(&service));
    }
}

fn write_node(dice: &mut Dice, world: &mut World, name: &str, us: bool, concerns: bool) {
    let name = if concerns && dice.one_in(2) { dice.pick(&["edge", "work-1"]) } else { name };
    let ingress = !concerns || dice.one_in(2);
    let metadata = objects::metadata(dice, "", name, us);
    if let Some(node) = read(objects::node(dice, metadata, ingress)) {
        world.cluster.nodes.insert(name.to_owned(), observe::node(&node));
    }
    let metadata = objects::metadata(dice, "", name, us);
    if let Some(report) = read(objects::report(dice, metadata)).filter(|_| dice.one_in(2)) {
        let name = if dice.one_in(2) { format!("{name}.beside") } else { name.to_owned() };
        world.cluster.reports.insert(name, observe::report(&report, &mut Vec::new()));
    }
}

/// Returns the key if the DaemonSet was forged as the operator.
fn write_daemon_set(
    dice: &mut Dice,
    world: &mut World,
    namespace: &str,
    name: &str,
    us: bool,
) -> Option<Key> {
    let made = dice.one_in(2);
    let name = if made { "proxy-agent-default-0123456789" } else { name };
    // Foreign objects keep a recognisable name.
    let name = if us { name.to_owned() } else { format!("{name}-hostile") };
    let metadata = objects::metadata(dice, namespace, &name, us);
    let set = observe::daemon_set(&read(objects::daemon_set(dice, metadata, made))?)?;
    let key = Key::new(namespace, name);
    world.cluster.daemon_sets.insert(key.clone(), set);
    us.then_some(key)
}

fn write_pod(dice: &mut Dice, world: &mut World, namespace: &str, name: &str, concerns: bool) {
    let nodes: &[&str] = if concerns { &["edge", "work-1", "gone", ""] } else { &["edge", "gone", "work-1"] };
    let metadata = objects::metadata(dice, namespace, name, false);
    let set = dice.pick(&["kube-proxy", "hostile-0", "proxy-agent-default-0123456789"]);
    let Some(object) = read(objects::pod(dice, metadata, set, nodes)) else { return };
    let key = Key::new(namespace, name);
    if let Some(pod) = observe::pod(&object) {
        world.cluster.pods.insert(key.clone(), pod);
    }
    if let Some(pod) = observe::sidecar_pod(&object) {
        world.cluster.sidecars.insert(key.clone(), pod);
    }
    if let Some(pod) = observe::redirect_pod(&object) {
        world.cluster.redirects.insert(key, pod);
    }
}

fn write_slice(dice: &mut Dice, world: &mut World, namespace: &str, name: &str) {
    let metadata = objects::metadata(dice, namespace, name, false);
    let service = if namespace == "web" { "frontend" } else { name };
    let slice = objects::slice(dice, metadata, service, &["edge", "work-1", "gone", ""]);
    if let Some((key, ready)) = read(slice).and_then(|slice| observe::endpoint_slice(&slice)) {
        world.cluster.endpoints.entry(key).or_default().insert(name.to_owned(), ready);
    }
}

fn write_admission(dice: &mut Dice, world: &mut World, forged: &mut Forged, us: bool) {
    let name =
        dice.pick(&["0-sourcepreserve.io", "sourcepreserve.web.0", "sourcepreserve.hostile-0.0", "other"]);
    let mut metadata = objects::metadata(dice, "", name, us);
    metadata["uid"] = json!("theirs");
    let Some(metadata) = read(metadata) else { return };
    let data = json!({"spec": dice.any(2), "webhooks": dice.any(2)});
    let written: Written = observe::written(&DynamicObject { types: None, metadata, data });
    let admission = &mut world.cluster.admission;
    admission.serves_policies = dice.one_in(2);
    admission.bundle = dice.one_in(2).then(|| dice.text());
    let kind = match dice.below(3) {
        0 => OwnKind::PodWebhook,
        1 => OwnKind::PodPolicy,
        _ => OwnKind::PodPolicyBinding,
    };
    world.cluster.own.entry(kind).or_default().insert(Key::new("", name), written);
    let known = (kind, name.to_owned());
    if us {
        forged.admission.insert(known);
    } else {
        forged.admission.remove(&known);
    }
}

/// One round: judges and executes everything that is planned. Every request must be buildable.
fn round(world: &mut World, forged: &Forged) {
    let actions = world.plan().actions;
    for action in &actions {
        is_ours(world, forged, action);
        assert!(!action.target().key.name.is_empty(), "{action}");
    }
    for action in &actions {
        world.carry_out(action);
    }
}

#[test]
fn most_of_what_is_generated_is_such_as_an_api_server_delivers() {
    fn readable<T: DeserializeOwned>(of: fn(&mut Dice, Value) -> Value) -> usize {
        let one = |seed: &u64| {
            let dice = &mut Dice::new(*seed);
            let metadata = objects::metadata(dice, "tenant", "hostile-0", true);
            read::<T>(of(dice, metadata)).is_some()
        };
        (0..100).filter(one).count()
    }
    let found = [
        readable::<Service>(|dice, metadata| objects::service(dice, &metadata)),
        readable::<Node>(|dice, metadata| objects::node(dice, metadata, true)),
        readable::<DaemonSet>(|dice, metadata| objects::daemon_set(dice, metadata, true)),
        readable::<Pod>(|dice, metadata| objects::pod(dice, metadata, "kube-proxy", &["edge"])),
        readable::<EndpointSlice>(|dice, metadata| objects::slice(dice, metadata, "web", &["edge"])),
        readable::<ConfigMap>(|dice, metadata| objects::config_map(dice, &metadata)),
        readable::<IngressSourceNode>(objects::report),
        readable::<IngressSourcePreserve>(objects::preserve),
    ];
    assert!(found.iter().all(|readable| *readable > 50), "{found:?}");
}

#[test]
fn whatever_others_write_ends_nothing_and_makes_the_operator_write_nothing_of_theirs() {
    let beginnings = [with_object(json!({})), ready()];
    cases(1, |dice| {
        let mut world = beginnings[dice.below(2)].clone();
        let forged = write(dice, &mut world, true);
        world.settings.cleanup = dice.one_in(8);
        if dice.one_in(4) {
            world.now = dice.one_of([Timestamp::MIN, Timestamp::MAX, Timestamp::UNIX_EPOCH]);
        }
        for _ in 0..=dice.below(3) {
            round(&mut world, &forged);
            if dice.one_in(2) {
                world.controllers();
            }
            let step = [
                SignedDuration::from_secs(1),
                SignedDuration::from_hours(1),
                SignedDuration::MAX,
                SignedDuration::MIN,
            ];
            world.pass(dice.one_of(step));
        }
    });
}

#[test]
fn whatever_others_keep_writing_an_object_that_it_does_not_concern_becomes_ready_and_can_be_deleted() {
    let beginning = with_object(json!({"rollout": {"maxUnavailable": 1, "progressDeadlineSeconds": 60}}));
    cases(50, |dice| {
        let mut world = beginning.clone();
        let kept = dice.one_in(2).then(|| {
            let mut kept = beginning.clone();
            write(dice, &mut kept, false);
            kept
        });
        let mut forged = write(dice, &mut world, false);
        forged.daemon_sets.extend(kept.iter().flat_map(|kept| kept.cluster.daemon_sets.keys().cloned()));
        let mut live = |world: &mut World, done: fn(&World) -> bool| {
            for _ in 0..150 {
                world.controllers();
                round(world, &forged);
                if done(world) {
                    return true;
                }
                world.pass(SignedDuration::from_secs(5));
                if let Some(kept) = kept.as_ref().filter(|_| dice.one_in(2)) {
                    keep_writing(world, kept);
                }
            }
            false
        };
        let is_ready = |world: &World| {
            let status = world.cluster.objects["web"].status.as_ref();
            status.and_then(|status| status.phase) == Some(Phase::Ready)
        };
        assert!(live(&mut world, is_ready), "{:?}: {:?}", phase(&world), world.cluster.objects["web"].status);
        world.delete_object("web");
        let left = |world: &World| world.cluster.objects.is_empty();
        assert!(live(&mut world, left), "{:?}", world.plan().actions);
        assert!(
            world.cluster.services[&Key::new("web", "frontend")]
                .owners
                .iter()
                .all(|owner| owner.manager != US)
        );
    });
}

/// Repeats the earlier hostile writes.
fn keep_writing(world: &mut World, kept: &World) {
    let version = world.version();
    for (key, service) in kept.cluster.services.iter().filter(|(key, _)| key.namespace == "tenant") {
        let mut service = service.clone();
        service.identity.version.clone_from(&version);
        world.cluster.services.insert(key.clone(), service);
    }
    for (name, node) in kept.cluster.nodes.iter().filter(|(name, _)| name.starts_with("hostile")) {
        let mut node = node.clone();
        node.identity.version.clone_from(&version);
        world.cluster.nodes.insert(name.clone(), node);
    }
    for (key, set) in kept.cluster.daemon_sets.iter().filter(|(key, _)| key.namespace == "tenant") {
        world.cluster.daemon_sets.insert(key.clone(), set.clone());
    }
    for (key, pod) in kept.cluster.pods.iter().filter(|(key, _)| key.namespace == "tenant") {
        world.cluster.pods.insert(key.clone(), pod.clone());
    }
}
