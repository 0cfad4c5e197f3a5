//! The rules of every mode, with the acknowledgements of mode Filter.

use std::collections::BTreeMap;

use isp_api::view::view;

use super::*;
use crate::filter::progress::FilterAcknowledgement;
use crate::fixtures::{preserve, reporting_agent};

fn facts_of(names: &[&str], acknowledgement: &FilterAcknowledgement) -> NodeFacts {
    let object = |name: &&str| preserve(name, json!({"serviceLabel": {"value": "shared"}}));
    let objects: Vec<_> = names.iter().map(object).collect();
    let store = ViewStore::default();
    let node = isp_api::validate::NodeIdentity { name: "n", labels: &BTreeMap::new() };
    store.publish(view(node, &objects), &objects);
    facts(&reporting_agent(), &store.current().unwrap(), acknowledgement)
}

#[test]
fn an_object_in_doubt_is_never_acknowledged() {
    // The younger of two objects with one label.
    let facts = facts_of(&["a", "b"], &FilterAcknowledgement::synced(1, Some(true)));
    let views = &facts.status.views;
    assert!(views[0].received && !views[1].received);
    let ready = &facts.ready;
    assert!(!ready.ready && ready.message.contains("b: spec.serviceLabel"), "{}", ready.message);
}

#[test]
fn a_restarted_agent_lets_the_acknowledgement_before_stand_until_it_has_taken_over() {
    let second = Duration::from_secs(1);
    let present = |received: bool| ObservedStatus::Present(json!({"views": [{"received": received}]}));
    for observed in [present(true), ObservedStatus::Unknown] {
        assert_eq!(held_back(&observed, second) + second, TAKES_OVER);
    }
    assert_eq!(held_back(&present(true), TAKES_OVER + second), Duration::ZERO, "it has taken too long");
    // Nothing is taken back.
    for observed in [present(false), ObservedStatus::Present(json!(null)), ObservedStatus::Gone] {
        assert_eq!(held_back(&observed, second), Duration::ZERO);
    }
}

#[test]
fn times_move_only_when_something_happened() {
    let ready = facts_of(&["one"], &FilterAcknowledgement::synced(1, Some(true)));
    let (early, late) = (Timestamp::UNIX_EPOCH, Timestamp::now());
    let first = report(ready.clone(), None, early);
    assert_eq!(first.status.last_sync, Some(Time(early)));
    let again = report(ready, Some(&first), late);
    assert_eq!(again.status, first.status);
    let gone = report(facts_of(&["one"], &FilterAcknowledgement::synced(0, None)), Some(&first), late);
    assert_eq!(gone.status.last_sync, Some(Time(early)));
    assert_eq!(gone.status.conditions[0].last_transition_time, Time(late));
}
