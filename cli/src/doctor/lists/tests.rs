#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};

use super::*;

fn policy(spec: &Value) -> Option<NetworkPolicy> {
    NetworkPolicy::of(serde_json::from_value(json!({"spec": spec})).unwrap())
}

#[test]
fn a_range_and_its_exceptions_must_both_hold() {
    let block = json!({"ipBlock": {"cidr": "0.0.0.0/0", "except": ["203.0.113.0/24"]}});
    let found =
        policy(&json!({"podSelector": {}, "ingress": [{"from": [block, {"podSelector": {}}]}]})).unwrap();
    let names: Vec<Vec<&str>> =
        found.alternatives.iter().map(|uses| uses.iter().map(|used| used.name).collect()).collect();
    assert_eq!(names, [["ipBlock", "ipBlock.except"]]);
    assert!(!found.lets_everybody_in);
}

#[test]
fn a_rule_without_a_source_lets_everybody_in_unless_it_is_about_some_ports() {
    let rules =
        |rules: Value| policy(&json!({"podSelector": {}, "ingress": rules})).unwrap().lets_everybody_in;
    assert!(rules(json!([{}])));
    assert!(!rules(json!([{"ports": [{"port": 9090}]}])));
    assert!(!rules(json!([])));
}

#[test]
fn a_policy_about_what_goes_out_is_none() {
    assert!(policy(&json!({"podSelector": {}, "policyTypes": ["Egress"]})).is_none());
    assert!(policy(&json!({"podSelector": {}, "policyTypes": ["Egress", "Ingress"]})).is_some());
}

#[test]
fn lists_are_known_by_the_end_of_their_names() {
    let of = |name: &str| lists(&[(name.to_owned(), "10.0.0.0/8, 192.0.2.1".to_owned())].into());
    for (name, action) in [
        ("nginx.ingress.kubernetes.io/whitelist-source-range", Action::Allow),
        ("nginx.ingress.kubernetes.io/denylist-source-range", Action::Deny),
        ("haproxy-ingress.github.io/allowlist-source-range", Action::Allow),
        ("k8s.apisix.apache.org/blocklist-source-range", Action::Deny),
        ("haproxy.org/deny-list", Action::Deny),
    ] {
        let [list] = &of(name)[..] else { panic!("{name}") };
        assert_eq!((list.action, list.used.ranges.len()), (action, 2), "{name}");
    }
    assert!(of("example.com/whitelist").is_empty());
}

#[test]
fn a_controller_is_known_by_its_program_or_its_labels() {
    let pod = |labels: Value, args: Value| {
        let pod = json!({
            "metadata": {"namespace": "edge", "name": "a", "labels": labels},
            "spec": {"containers": [{"name": "controller", "args": args}]},
        });
        Controller::of(&serde_json::from_value(pod).unwrap())
    };
    let labels =
        json!({"app.kubernetes.io/name": "ingress-nginx", "app.kubernetes.io/component": "controller"});
    let args = json!(["/nginx-ingress-controller", "--configmap=$(POD_NAMESPACE)/settings"]);
    assert_eq!(pod(json!({}), args).unwrap().settings, Some(Key::new("edge", "settings")));
    assert_eq!(pod(labels, json!([])), Some(Controller { settings: None }));
    assert_eq!(pod(json!({"app.kubernetes.io/name": "web"}), json!(["--port=80"])), None);
}
