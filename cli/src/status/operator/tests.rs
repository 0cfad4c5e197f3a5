#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};

use super::*;

const RENEWED: &str = "2026-01-01T00:00:00.000000Z";

fn state(spec: &Value, seconds_later: i64) -> Operator {
    let lease: Lease = serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap();
    let renewed: Timestamp = RENEWED.parse().unwrap();
    Operator::of(&lease, "system", renewed + SignedDuration::from_secs(seconds_later))
}

fn held() -> Value {
    json!({"holderIdentity": "operator-1", "renewTime": RENEWED, "leaseDurationSeconds": 15})
}

#[test]
fn an_operator_that_renews_its_lease_is_running_whatever_the_clocks_differ_by() {
    for seconds in [-3600, 0, 15, 75] {
        assert_eq!(state(&held(), seconds), Operator::Running, "{seconds} s");
    }
    assert_eq!(Operator::Running.notice(RENEWED.parse().unwrap()), None);
}

#[test]
fn an_operator_that_stopped_renewing_or_released_its_lease_is_down() {
    let silent = state(&held(), 300);
    assert!(silent.is_down());
    let now: Timestamp = "2026-01-01T00:05:00Z".parse().unwrap();
    assert_eq!(
        silent.notice(now).unwrap(),
        "operator: not running: Lease system/sourcepreserve-operator was last renewed 5m ago"
    );
    for spec in
        [json!({"holderIdentity": "", "renewTime": RENEWED}), json!({"holderIdentity": "a"}), json!({})]
    {
        let ended = state(&spec, 0);
        assert!(ended.is_down(), "{spec}");
        assert_eq!(
            ended.notice(now).unwrap(),
            "operator: not running: nobody holds Lease system/sourcepreserve-operator"
        );
    }
}

#[test]
fn a_lease_that_cannot_be_read_says_nothing_about_the_operator_and_that_is_told() {
    let unknown = Operator::Unknown { problem: "the right to get leases is missing".to_owned() };
    assert!(!unknown.is_down());
    let notice = unknown.notice(RENEWED.parse().unwrap()).unwrap();
    assert!(notice.contains("unknown") && notice.contains("the right to get leases"), "{notice}");
}
