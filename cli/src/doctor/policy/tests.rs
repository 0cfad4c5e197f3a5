#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::json;

use super::*;

fn named(rules: &Value) -> Vec<Vec<&'static str>> {
    let policy: AuthorizationPolicy = serde_json::from_value(json!({"rules": rules})).unwrap();
    let names = |uses: &Vec<Use>| uses.iter().map(|used| used.name).collect();
    policy.alternatives().iter().map(names).collect()
}

#[test]
fn fields_of_one_source_must_all_hold_and_sources_are_alternatives() {
    let rules = json!([{"from": [
        {"source": {"ipBlocks": ["10.0.0.0/8"], "notIpBlocks": ["10.1.0.0/16"]}},
        {"source": {"principals": ["a"]}},
        {"source": {"remoteIpBlocks": ["192.0.2.1"]}},
    ]}]);
    assert_eq!(named(&rules), [vec!["ipBlocks", "notIpBlocks"], vec!["remoteIpBlocks"]]);
}

#[test]
fn conditions_of_when_hold_for_each_source() {
    let when = json!([{"key": "remote.ip", "values": ["192.0.2.1"]}, {"key": "request.headers[a]", "values": ["b"]}]);
    let rules = json!([
        {"when": when},
        {"from": [{"source": {"ipBlocks": ["10.0.0.0/8"]}}, {"source": {"namespaces": ["a"]}}], "when": when},
    ]);
    assert_eq!(named(&rules), [vec!["remote.ip"], vec!["ipBlocks", "remote.ip"], vec!["remote.ip"]]);
}

#[test]
fn where_a_rule_matches_everybody_no_address_decides() {
    let blocks = json!({"from": [{"source": {"ipBlocks": ["10.0.0.0/8"]}}]});
    assert_eq!(named(&json!([blocks, {}])), Vec::<Vec<&str>>::new());
    let paths = json!({"to": [{"operation": {"paths": ["/admin"]}}]});
    assert_eq!(named(&json!([blocks, paths])), [vec!["ipBlocks"]]);
}

#[test]
fn an_entry_that_is_no_range_is_kept_as_it_is_written() {
    let used = Use::of("ipBlocks", Field::Peer, false, &["10.0.0.0/8".to_owned(), "10.0.0.0/80".to_owned()]);
    assert_eq!(used.unwrap().unreadable.as_deref(), Some("10.0.0.0/80"));
}
