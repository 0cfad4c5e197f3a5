use std::collections::BTreeMap;

use isp_api::view::{View, view};

use super::*;
use crate::fixtures::preserve;

fn current(names: &[&str]) -> Current {
    let object = |name: &&str| preserve(name, json!({"serviceLabel": {"value": "shared"}}));
    let objects: Vec<_> = names.iter().map(object).collect();
    let state = State::new();
    state.publish(view(isp_api::validate::NodeIdentity { name: "n", labels: &BTreeMap::new() }, &objects));
    state.current().unwrap()
}

fn reading(watches: u32, synced: bool) -> Reading {
    Reading { watches, had_since: synced.then_some(std::time::SystemTime::UNIX_EPOCH) }
}

#[test]
fn nothing_is_acknowledged_before_kube_proxy_has_read_it() {
    let facts = facts(&current(&["one"]), &reading(1, false), Some(false));
    assert!(!facts.ready && !facts.views[0].relisted);
    assert_eq!((facts.reason, facts.views[0].generation), ("NotRelisted", 3));
}

#[test]
fn a_view_that_was_read_is_acknowledged_with_what_the_kernel_did() {
    let facts = facts(&current(&["one"]), &reading(1, true), Some(true));
    assert!(facts.ready && facts.views[0].relisted);
    assert_eq!((facts.views[0].programmed, facts.views[0].view), (Some(true), View::ClusterOnly));
}

#[test]
fn an_object_in_doubt_is_never_acknowledged() {
    // The younger of two objects with one label.
    let facts = facts(&current(&["a", "b"]), &reading(1, true), Some(true));
    assert!(facts.views[0].relisted && !facts.views[1].relisted);
    assert!(!facts.ready && facts.message.contains("b: spec.serviceLabel"), "{}", facts.message);
}

#[test]
fn a_kube_proxy_that_is_gone_is_told_and_what_it_had_stays_true() {
    let facts = facts(&current(&["one"]), &reading(0, true), None);
    assert_eq!(facts.reason, "KubeProxyNotConnected");
    assert!(facts.views[0].relisted, "its rules are still in the kernel");
}

#[test]
fn times_move_only_when_something_happened() {
    let ready = facts(&current(&["one"]), &reading(1, true), Some(true));
    let (early, late) = (Timestamp::UNIX_EPOCH, Timestamp::now());
    let first = status("default", &ready, None, early);
    assert_eq!(first.last_sync, Some(Time(early)));
    let again = status("default", &ready, Some(&first), late);
    assert_eq!(again, first);
    let gone = status("default", &facts(&current(&["one"]), &reading(0, true), None), Some(&first), late);
    assert_eq!(gone.last_sync, Some(Time(early)));
    assert_eq!(gone.conditions[0].last_transition_time, Time(late));
}

#[test]
fn the_kernel_is_looked_at_until_it_is_known_to_have_followed() {
    assert_eq!(look_again(true, Some(false)), Some(AGAIN));
    assert_eq!(look_again(true, None), Some(AGAIN), "not to be told yet is no reason to stop");
    assert_eq!(look_again(true, Some(true)), None);
    assert_eq!(look_again(false, Some(false)), None, "there is nothing to follow; news wake it");
}
