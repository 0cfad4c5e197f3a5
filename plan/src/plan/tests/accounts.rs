//! The agents' ServiceAccount: created before the first agent, deleted after the last, never
//! shared.

use isp_api::preserve::Phase;
use serde_json::{Value, json};

use super::frontend::{condition, phase, ready, with_object};
use super::world::World;
use crate::action::Action;
use crate::cluster::{Cluster, Identity, Key, PodRole, Written};
use crate::observe;
use crate::own::OwnKind;
use crate::plan::accounts::KINDS;

fn account() -> Key {
    Key::new("kube-system", "proxy-agent")
}

/// The number of account objects that the operator owns.
fn made(cluster: &Cluster) -> usize {
    KINDS.iter().flat_map(|kind| cluster.own(*kind)).filter(|(_, written)| written.ours).count()
}

fn has_agents(cluster: &Cluster) -> bool {
    let agent = |pod: &crate::cluster::Pod| matches!(pod.role, Some(PodRole::Agent { .. }));
    observe::made(cluster).next().is_some() || cluster.pods.values().any(agent)
}

/// Runs the operator, and checks at each action that no agent lacks its account.
fn settle(world: &mut World) {
    world.settle(|world, action| {
        if let Action::ApplyPool { .. } = action {
            assert_eq!(made(&world.cluster), 6, "{action}");
        }
        let agents = KINDS.map(|kind| matches!(action, Action::DeleteOwn { kind: of, .. } if *of == kind));
        assert!(!agents.contains(&true) || !has_agents(&world.cluster), "{action}");
    });
}

fn somebody_elses(content: Value) -> Written {
    Written {
        identity: Identity { uid: "theirs".to_owned(), version: "1".to_owned() },
        ours: false,
        deleting: false,
        content,
    }
}

#[test]
fn the_account_comes_before_the_first_agent_and_goes_after_the_last() {
    let mut world = with_object(json!({}));
    settle(&mut world);
    assert_eq!(phase(&world), Phase::Ready);
    assert_eq!(made(&world.cluster), 6);
    world.delete_object("web");
    settle(&mut world);
    assert!(world.cluster.objects.is_empty());
    assert_eq!(made(&world.cluster), 0);
}

#[test]
fn a_cleanup_deletes_the_account_after_the_last_agent() {
    let mut world = ready();
    world.settings.cleanup = true;
    settle(&mut world);
    assert!(!has_agents(&world.cluster));
    assert_eq!(made(&world.cluster), 0);
}

#[test]
fn an_account_stays_with_agents_that_are_retained() {
    let mut world = with_object(json!({"deletionPolicy": "Retain"}));
    settle(&mut world);
    world.delete_object("web");
    settle(&mut world);
    assert!(world.cluster.objects.is_empty());
    assert!(has_agents(&world.cluster));
    assert_eq!(made(&world.cluster), 6);
}

#[test]
fn an_account_of_somebody_elses_is_named_and_left_alone() {
    let mut world = with_object(json!({}));
    world.cluster.own.entry(OwnKind::Account).or_default().insert(account(), somebody_elses(json!({})));
    settle(&mut world);
    assert!(!has_agents(&world.cluster));
    let (status, reason, message) = condition(&world, "AgentsReady");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "AccountTaken"));
    assert!(message.contains("ServiceAccount kube-system/proxy-agent"), "{message}");
    assert_eq!(world.cluster.own[&OwnKind::Account][&account()].identity.version, "1");

    // Its owner deletes it.
    world.cluster.own.entry(OwnKind::Account).or_default().remove(&account());
    settle(&mut world);
    assert_eq!(phase(&world), Phase::Ready);
}

#[test]
fn objects_that_an_earlier_release_installed_are_taken_over() {
    let mut world = ready();
    let uid = world.cluster.own[&OwnKind::Account][&account()].identity.uid.clone();
    for kind in KINDS {
        world.cluster.own.entry(kind).or_default().values_mut().for_each(|written| written.ours = false);
    }
    settle(&mut world);
    assert_eq!(made(&world.cluster), 6);
    assert_eq!(world.cluster.own[&OwnKind::Account][&account()].identity.uid, uid, "it is the same one");
    assert_eq!(phase(&world), Phase::Ready);
}

#[test]
fn a_role_that_somebody_widened_is_narrowed_again() {
    let mut world = ready();
    let key = Key::new("", "sourcepreserve-proxy-agent");
    let role = world.cluster.own.entry(OwnKind::Role).or_default().get_mut(&key).unwrap();
    let rules = role.content.clone();
    let more = json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]});
    role.content["rules"].as_array_mut().unwrap().push(more);
    settle(&mut world);
    assert_eq!(world.cluster.own[&OwnKind::Role][&key].content, rules);
}

#[test]
fn agents_of_an_account_that_was_made_again_are_replaced_because_their_tokens_are_worthless() {
    let mut world = ready();
    let revision = world.cluster.nodes["work-1"].revision.clone();
    world.cluster.own.entry(OwnKind::Account).or_default().remove(&account());
    // Until the account exists, the agents are unchanged.
    world.step();
    assert_eq!(made(&world.cluster), 6);
    assert_eq!(world.cluster.nodes["work-1"].revision, revision);
    settle(&mut world);
    assert_eq!(phase(&world), Phase::Ready);
    assert_ne!(world.cluster.nodes["work-1"].revision, revision);
}

#[test]
fn an_agent_on_a_node_that_does_not_answer_keeps_no_account() {
    let mut world = ready();
    let agent =
        |pod: &crate::cluster::Pod| pod.node == "work-1" && matches!(pod.role, Some(PodRole::Agent { .. }));
    let (key, pod) = world.cluster.pods.iter().find(|(_, pod)| agent(pod)).unwrap();
    let (key, pod) = (key.clone(), pod.clone());
    world.delete_object("web");
    settle(&mut world);
    assert_eq!(made(&world.cluster), 0);

    // The same with a pod that never terminates.
    let mut world = ready();
    world.node("work-1", |node| node.ready = false);
    world.delete_object("web");
    world.settle(|_, _| {});
    world.cluster.pods.insert(key, pod);
    world.settle(|_, _| {});
    assert_eq!(made(&world.cluster), 0);
    assert!(world.cluster.objects.is_empty());
}
