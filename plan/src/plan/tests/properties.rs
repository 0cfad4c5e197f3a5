//! Properties over generated clusters and histories: the interlocks hold for every write, in any
//! execution order and with any failures; planning converges from every state; then every object is
//! ready or reports why not; deletion leaves nothing behind.

use isp_api::conditions::find;
use isp_api::preserve::{Mode, Phase, TrafficPolicy};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::json;

use super::interlocks::{allowed, one_kube_proxy_each, reachable, skipped_services_are_served};
use super::kube_proxy::remove_affinity;
use super::ownership::forge;
use super::world::{INGRESS, World};
use crate::cluster::{Key, Taint};
use crate::ownership::Owner;
use crate::plan::kube_proxy::is_kept_off;
use crate::record::{Failure, Handover};
use crate::waits::Waits;

/// An event in a generated history.
#[derive(Clone, Debug)]
enum Move {
    Plan { order: u64, fail: u64 },
    Controllers,
    Wait(u16),
    CreateObject(u8, u8),
    DeleteObject(u8),
    ChangeObject(u8, u8),
    AddNode(u8, bool),
    RemoveNode(u8),
    ToggleIngress(u8),
    ToggleReady(u8),
    ToggleBroken(u8),
    AddService(u8),
    RemoveService(u8),
    Endpoints(u8, u8, u8),
    PutBack(u8),
    Declare(u8, bool),
    ToggleImages(u8),
    ToggleTaint(u8),
    RemoveAffinity,
    UpgradeAgent(u8),
    LeaderChange,
    ForgeService(u8),
    ForgeNode(u8, u8),
    EmptyManagedFields(u8),
    ProxyName(u8, bool),
    ChangeMode(u8),
}

fn a_move() -> impl Strategy<Value = Move> {
    let byte = any::<u8>;
    prop_oneof![
        8 => (any::<u64>(), any::<u64>()).prop_map(|(order, fail)| Move::Plan { order, fail }),
        6 => Just(Move::Controllers),
        2 => (1..700_u16).prop_map(Move::Wait),
        3 => (byte(), byte()).prop_map(|(name, spec)| Move::CreateObject(name, spec)),
        1 => byte().prop_map(Move::DeleteObject),
        1 => (byte(), byte()).prop_map(|(name, spec)| Move::ChangeObject(name, spec)),
        1 => (byte(), any::<bool>()).prop_map(|(name, ingress)| Move::AddNode(name, ingress)),
        1 => byte().prop_map(Move::RemoveNode),
        1 => byte().prop_map(Move::ToggleIngress),
        1 => byte().prop_map(Move::ToggleReady),
        1 => byte().prop_map(Move::ToggleBroken),
        1 => byte().prop_map(Move::AddService),
        1 => byte().prop_map(Move::RemoveService),
        2 => (byte(), byte(), byte()).prop_map(|(service, node, count)| Move::Endpoints(service, node, count)),
        1 => byte().prop_map(Move::PutBack),
        1 => (byte(), any::<bool>()).prop_map(|(service, local)| Move::Declare(service, local)),
        1 => byte().prop_map(Move::ToggleImages),
        1 => byte().prop_map(Move::ToggleTaint),
        1 => Just(Move::RemoveAffinity),
        1 => byte().prop_map(Move::UpgradeAgent),
        1 => Just(Move::LeaderChange),
        1 => byte().prop_map(Move::ForgeService),
        1 => (byte(), byte()).prop_map(|(node, what)| Move::ForgeNode(node, what)),
        1 => byte().prop_map(Move::EmptyManagedFields),
        1 => (byte(), any::<bool>()).prop_map(|(service, other)| Move::ProxyName(service, other)),
        2 => byte().prop_map(Move::ChangeMode),
    ]
}

const NODES: u8 = 6;
const SERVICES: u8 = 4;
/// The namespace that contains only forged Services.
pub(super) const FORGED: &str = "tenant";

fn node(number: u8) -> String {
    format!("n{}", number % NODES)
}

fn service(number: u8) -> Key {
    Key::new("web", format!("s{}", number % SERVICES))
}

fn object(number: u8) -> String {
    format!("o{}", number % 3)
}

/// One of a few specs, some of which conflict.
fn spec(number: u8) -> serde_json::Value {
    let services = match number % 4 {
        0 => json!([{"namespace": "web", "name": "s0"}]),
        1 => json!([{"namespace": "web", "name": "s1"}, {"namespace": "web", "name": "s2"}]),
        2 => json!([{"namespace": "web", "selector": {"matchLabels": {"expose": "yes"}}}]),
        _ => json!([{"namespace": "web", "name": "s3"}]),
    };
    let pools = match (number / 4) % 3 {
        0 => json!([]),
        1 => {
            json!([{"name": "even", "selector": {"matchLabels": {"kind": "even"}}}, {"name": "rest", "selector": {}}])
        }
        _ => json!([{"name": "even", "selector": {"matchLabels": {"kind": "even"}}}]),
    };
    let beside = number % 5 < 2;
    json!({
        "ingressNodes": {"selector": {"matchLabels": {INGRESS: ""}}},
        "services": services,
        "mode": if beside { "Beside" } else { "Filter" },
        "nodePools": if beside { json!([]) } else { pools },
        "whenNoIngressEndpoint": if number & 16 == 0 { "KeepLocal" } else { "FallBack" },
        "conflictPolicy": if number & 32 == 0 { "Report" } else { "Force" },
        "deletionPolicy": if number & 0xc0 == 0xc0 { "Retain" } else { "Restore" },
        "sidecars": match number % 3 {
            0 => json!([]),
            1 => json!([{"namespaceSelector": {"matchLabels": {"team": "a"}}}]),
            _ => json!([{"namespaceSelector": {"matchLabels": {"team": "b"}}, "via": "Policy"}]),
        },
        "rollout": {
            "maxUnavailable": if number & 64 == 0 { json!(1) } else { json!("50%") },
            "onFailure": if number & 128 == 0 { "RollBack" } else { "Pause" },
        },
    })
}

fn toggle(labels: &mut std::collections::BTreeMap<String, String>, key: &str) {
    if labels.remove(key).is_none() {
        labels.insert(key.to_owned(), String::new());
    }
}

fn happen(world: &mut World, what: &Move) {
    match what {
        Move::Plan { order, fail } => {
            let mut actions = world.plan().actions;
            let count = actions.len().max(1);
            // Any order, with any failures, chosen by the bits of two numbers.
            actions.rotate_left(usize::try_from(*order % 1000).unwrap() % count);
            if order & 1 == 1 {
                actions.reverse();
            }
            for (number, action) in actions.iter().enumerate() {
                if fail >> (number % 64) & 1 == 0 {
                    allowed(world, action);
                    world.carry_out(action);
                }
            }
        }
        Move::Controllers => world.controllers(),
        Move::Wait(seconds) => world.now += SignedDuration::from_secs(i64::from(*seconds)),
        Move::CreateObject(name, number) => {
            if !world.cluster.objects.contains_key(&object(*name)) {
                world.add_object(&object(*name), &spec(*number));
            }
        }
        Move::DeleteObject(name) => world.delete_object(&object(*name)),
        Move::ChangeObject(name, number) => {
            let changed = serde_json::from_value(spec(*number)).unwrap();
            world.object(&object(*name), |object| object.spec = changed);
        }
        Move::AddNode(name, ingress) => add_node(world, *name, *ingress),
        Move::RemoveNode(name) => world.remove_node(&node(*name)),
        Move::ToggleIngress(name) => world.node(&node(*name), |node| toggle(&mut node.labels, INGRESS)),
        Move::ToggleReady(name) => world.node(&node(*name), |node| node.ready = !node.ready),
        Move::ToggleBroken(number) => {
            let name = node(*number);
            if number % 2 == 0 {
                if world.broken.remove(&name).is_none() {
                    world.break_agent(&name);
                }
            } else if !world.lingering.remove(&name) {
                world.lingering.insert(name);
            }
        }
        Move::AddService(number) => {
            if !world.cluster.services.contains_key(&service(*number)) {
                add_service(world, *number);
            }
        }
        Move::RemoveService(number) => {
            world.cluster.services.remove(&service(*number));
            world.cluster.endpoints.remove(&service(*number));
        }
        Move::Endpoints(number, name, count) => {
            if world.cluster.nodes.contains_key(&node(*name)) {
                world.set_endpoints(&service(*number), &node(*name), u32::from(count % 2));
            }
        }
        Move::PutBack(number) => world.update_policy(&service(*number), "helm", TrafficPolicy::Cluster),
        Move::Declare(number, local) => {
            let policy = if *local { TrafficPolicy::Local } else { TrafficPolicy::Cluster };
            world.declare_policy(&service(*number), "argocd", policy);
        }
        Move::ToggleImages(number) => {
            if world.unpullable.remove(&node(*number)).is_none() {
                world.unpullable.insert(node(*number), "container agent: ErrImagePull".to_owned());
            }
        }
        Move::ToggleTaint(number) => world.node(&node(*number), |node| {
            if node.taints.pop().is_none() {
                node.taints.push(Taint {
                    key: "own".to_owned(),
                    value: String::new(),
                    effect: "NoSchedule".to_owned(),
                });
            }
        }),
        Move::RemoveAffinity => remove_affinity(world),
        Move::UpgradeAgent(number) => world.settings.agent_image = format!("agent:{}", number % 3),
        Move::LeaderChange => drop(world.waits.replace(Waits::new())),
        Move::ForgeService(number) => {
            forge(world, &Key::new(FORGED, format!("f{}", number % 2)), &object(number / 2));
        }
        Move::ForgeNode(number, what) => forge_node(world, &node(*number), *what),
        Move::ProxyName(number, other) => world.set_proxy_name(&service(*number), other.then_some("other")),
        Move::ChangeMode(name) => world.object(&object(*name), |object| {
            object.spec.mode = match object.spec.mode {
                Mode::Filter => Mode::Beside,
                Mode::Beside => Mode::Filter,
            };
        }),
        Move::EmptyManagedFields(number) => match number % (SERVICES + 1) {
            SERVICES => empty_kube_proxy(world),
            number => world.service(&service(number), |service| {
                // Otherwise nothing would show that another manager declared Local.
                if !service.owners.iter().any(|owner| owner.applies && !owner.is_us()) {
                    service.owners.clear();
                }
            }),
        },
    }
}

fn empty_kube_proxy(world: &mut World) {
    let version = world.version();
    let set = world.cluster.daemon_sets.get_mut(&World::kube_proxy_key()).unwrap();
    set.owners.clear();
    set.identity.version = version;
}

/// Forges our annotations and labels on a node.
fn forge_node(world: &mut World, name: &str, what: u8) {
    let pool = ["default", "even", "rest", "none"][usize::from(what % 4)];
    let handover = Handover {
        restart: what & 4 == 0,
        from: (what & 8 == 0).then(|| "0123456789".to_owned()),
        ..Handover::new(pool, Timestamp::MAX)
    };
    let failure = Failure { pool: pool.to_owned(), revision: "0123456789".to_owned(), reason: String::new() };
    world.node(name, |node| match what / 16 % 3 {
        0 => node.handover = Some(handover),
        1 => node.handover = None,
        _ => node.failure = Some(failure),
    });
}

fn add_node(world: &mut World, name: u8, ingress: bool) {
    let (name, kind) = (node(name), if name.is_multiple_of(2) { "even" } else { "odd" });
    if !world.cluster.nodes.contains_key(&name) {
        let labels: &[(&str, &str)] =
            if ingress { &[("kind", kind), (INGRESS, "")] } else { &[("kind", kind)] };
        world.add_node(&name, labels);
    }
}

fn add_service(world: &mut World, number: u8) {
    world.add_service(&service(number), "kubectl-create");
    if number.is_multiple_of(2) {
        world.service(&service(number), |service| {
            service.labels.insert("expose".to_owned(), "yes".to_owned());
        });
    }
}

fn world() -> World {
    let mut world = World::new(&[]);
    world.cluster.admission.bundle = Some("QQ==".to_owned());
    world.cluster.admission.serves_policies = true;
    for number in 0..NODES {
        add_node(&mut world, number, number < 2);
    }
    for number in 0..SERVICES {
        add_service(&mut world, number);
        world.set_endpoints(&service(number), &node(number), 1);
    }
    world
}

/// Nothing fails from now on.
fn heal(world: &mut World) {
    world.broken.clear();
    world.unpullable.clear();
    world.lingering.clear();
    let names: Vec<String> = world.cluster.nodes.keys().cloned().collect();
    for name in names {
        world.node(&name, |node| {
            node.ready = true;
            node.taints.clear();
        });
    }
}

const REASONS: &[&str] = &[
    "BadSelector",
    "NoIngressNodes",
    "NoServices",
    "ServiceMissing",
    "NotExposed",
    "NoIngressEndpoint",
    "WaveFailed",
    "NodeWithoutPool",
    "Conflict",
    "Degraded",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: super::cases(), ..ProptestConfig::default() })]

    #[test]
    fn every_history_keeps_the_interlocks_comes_to_rest_and_can_be_undone(moves in prop::collection::vec(a_move(), 0..80)) {
        let mut world = world();
        for what in &moves {
            happen(&mut world, what);
            one_kube_proxy_each(&world.cluster);
        }
        heal(&mut world);
        world.settle(allowed);
        one_kube_proxy_each(&world.cluster);
        reachable(&world.cluster);
        skipped_services_are_served(&world.cluster);

        for object in world.cluster.objects.values() {
            let status = object.status.as_ref().unwrap();
            prop_assert_eq!(status.observed_generation, object.metadata.generation);
            let ready = find(&status.conditions, "Ready").unwrap();
            if ready.status == "True" {
                prop_assert_eq!(status.phase, Some(Phase::Ready));
            } else {
                prop_assert!(REASONS.contains(&ready.reason.as_str()), "{}: {}", ready.reason, ready.message);
                prop_assert!(!ready.message.is_empty());
            }
        }
        prop_assert!(world.plan().actions.is_empty());
        prop_assert!(world.plan().notices.is_empty());

        let names: Vec<String> = world.cluster.objects.keys().cloned().collect();
        for name in names {
            world.object(&name, |object| object.spec.deletion_policy = isp_api::preserve::DeletionPolicy::Restore);
            world.delete_object(&name);
        }
        world.settle(allowed);
        prop_assert!(world.cluster.objects.is_empty(), "{:?}", world.cluster.objects.keys());

        // Cleanup removes what earlier objects retained.
        world.settings.cleanup = true;
        world.settle(allowed);
        for (key, service) in &world.cluster.services {
            prop_assert!(!service.owners.iter().any(Owner::is_us), "{key}: {service:?}");
            prop_assert!(service.record.is_none(), "{key}: {service:?}");
            prop_assert!(!service.labels.contains_key("sourcepreserve.io/preserve"), "{key}: {service:?}");
            prop_assert!(!service.is_taken_over(), "{key}: {service:?}");
            let declared = service.owners.iter().any(|owner| owner.field && owner.applies);
            prop_assert!(declared || service.policy == Some(TrafficPolicy::Cluster), "{key}: {service:?}");
        }
        for (name, node) in &world.cluster.nodes {
            let left = node.pool.is_some() || node.handover.is_some() || node.failure.is_some();
            prop_assert!(!left, "{name}: {node:?}");
        }
        prop_assert!(world.cluster.reports.is_empty());
        prop_assert!(!world.cluster.daemon_sets.values().any(|set| set.made));
        let kube_proxy = &world.cluster.daemon_sets[&World::kube_proxy_key()];
        prop_assert!(kube_proxy.record.is_none() && !is_kept_off(kube_proxy));
    }
}
