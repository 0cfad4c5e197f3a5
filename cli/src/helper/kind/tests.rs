use k8s_openapi::api::core::v1::{Container, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;

const KIND: Kind = Kind { name: "isp-test", containers: &["read", "ask"], lifetime: Duration::from_mins(2) };

fn helper() -> Pod {
    let container = Container { name: "read".to_owned(), ..Container::default() };
    Pod {
        metadata: ObjectMeta {
            name: Some(KIND.new_name()),
            labels: Some(KIND.labels()),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
        ..Pod::default()
    }
}

#[test]
fn a_pod_of_somebody_else_with_the_same_labels_is_no_helper() {
    assert!(KIND.is_helper(&helper()));
    for name in ["database-0", "isp-testing", "isp-test"] {
        let mut other = helper();
        other.metadata.name = Some(name.to_owned());
        assert!(!KIND.is_helper(&other), "{name}");
    }
    let mut other = helper();
    other.spec.as_mut().unwrap().containers[0].name = "database".to_owned();
    assert!(!KIND.is_helper(&other));
    let mut other = helper();
    let sidecar = Container { name: "sidecar".to_owned(), ..Container::default() };
    other.spec.as_mut().unwrap().containers.push(sidecar);
    assert!(!KIND.is_helper(&other));
    let mut other = helper();
    other.metadata.labels.as_mut().unwrap().remove(NAME_LABEL);
    assert!(!KIND.is_helper(&other));
}

#[test]
fn a_helper_is_old_when_nobody_can_be_waiting_for_it() {
    let at = |second| Timestamp::from_second(second).unwrap();
    for (age, old) in [(-1000, false), (0, false), (120, false), (241, true)] {
        let created = ObjectMeta { creation_timestamp: Some(Time(at(10_000))), ..ObjectMeta::default() };
        assert_eq!(KIND.is_old(&created, at(10_000 + age)), old, "{age}");
    }
    assert!(!KIND.is_old(&ObjectMeta::default(), at(10_000)), "its age is not known");
}
