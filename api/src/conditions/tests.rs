use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

use super::*;

fn condition(type_: &str, status: &str, message: &str, second: i64) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: "Because".to_owned(),
        message: message.to_owned(),
        observed_generation: Some(second),
        last_transition_time: Time(Timestamp::from_second(second).unwrap()),
    }
}

#[test]
fn a_new_type_is_added() {
    let mut conditions = vec![condition("Ready", "True", "", 1)];
    record(&mut conditions, condition("Conflict", "False", "", 2));
    assert_eq!(conditions, [condition("Ready", "True", "", 1), condition("Conflict", "False", "", 2)]);
    assert_eq!(find(&conditions, "Conflict"), Some(&condition("Conflict", "False", "", 2)));
    assert_eq!(find(&conditions, "Degraded"), None);
}

#[test]
fn the_transition_time_stays_while_the_status_does() {
    let mut conditions = vec![condition("Ready", "False", "two nodes left", 1)];
    record(&mut conditions, condition("Ready", "False", "one node left", 2));
    let expected = Condition {
        last_transition_time: Time(Timestamp::from_second(1).unwrap()),
        ..condition("Ready", "False", "one node left", 2)
    };
    assert_eq!(conditions, [expected]);
}

#[test]
fn the_transition_time_moves_with_the_status() {
    let mut conditions = vec![condition("Ready", "False", "", 1)];
    record(&mut conditions, condition("Ready", "True", "", 2));
    assert_eq!(conditions, [condition("Ready", "True", "", 2)]);
}
