use std::collections::BTreeMap;

use isp_api::view::{View, view};
use serde_json::json;

use super::*;
use crate::fixtures::{preserve, reporting_agent};
use crate::node::report::{NodeFacts, facts};
use crate::node::view::ViewStore;

fn facts_of(acknowledgement: FilterAcknowledgement) -> NodeFacts {
    let object = preserve("one", json!({"serviceLabel": {"value": "shared"}}));
    let store = ViewStore::default();
    let node = isp_api::validate::NodeIdentity { name: "n", labels: &BTreeMap::new() };
    store.publish(view(node, [&object]), [&object]);
    facts(&reporting_agent(), &store.current().unwrap(), &acknowledgement)
}

#[test]
fn nothing_is_acknowledged_before_kube_proxy_has_read_it() {
    let facts = facts_of(FilterAcknowledgement::not_synced(1, Some(false)));
    assert!(!facts.ready.ready && !facts.status.views[0].received);
    assert_eq!((facts.ready.reason, facts.status.views[0].generation), ("NotRelisted", 3));
}

#[test]
fn a_view_that_was_read_is_acknowledged_with_what_the_kernel_did() {
    let facts = facts_of(FilterAcknowledgement::synced(1, Some(true)));
    let view = &facts.status.views[0];
    assert!(facts.ready.ready && view.received);
    assert_eq!((view.programmed, view.view), (Some(true), View::ClusterOnly));
}

#[test]
fn a_kube_proxy_that_is_gone_is_told_and_what_it_had_stays_true() {
    let facts = facts_of(FilterAcknowledgement::synced(0, None));
    assert_eq!(facts.ready.reason, "KubeProxyNotConnected");
    assert!(!facts.status.active);
    assert!(facts.status.views[0].received, "its rules are still in the kernel");
}

#[test]
fn the_kernel_is_looked_at_until_it_is_known_to_have_followed() {
    let ask_again = |acknowledgement: FilterAcknowledgement| acknowledgement.ask_again();
    assert_eq!(ask_again(FilterAcknowledgement::synced(1, Some(false))), Some(METRICS_INTERVAL));
    let unknown = ask_again(FilterAcknowledgement::synced(1, None));
    assert_eq!(unknown, Some(METRICS_INTERVAL), "not to be told yet is no reason to stop");
    assert_eq!(ask_again(FilterAcknowledgement::synced(1, Some(true))), None);
    let not_synced = ask_again(FilterAcknowledgement::not_synced(1, Some(false)));
    assert_eq!(not_synced, None, "there is nothing to follow; news wake it");
}
