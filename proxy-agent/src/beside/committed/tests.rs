use std::net::Ipv4Addr;

use super::*;

fn name(name: &str) -> Arc<ServiceName> {
    Arc::new(ServiceName { namespace: "shop".to_owned(), name: name.to_owned() })
}

fn service(objects: &[&str], local_endpoints: usize) -> CommittedService {
    CommittedService {
        objects: objects.iter().map(|object| Arc::from(*object)).collect(),
        health_check: Some(HealthCheck {
            port: 31000,
            local_endpoints: [(Ipv4Addr::LOCALHOST.into(), local_endpoints)].into(),
        }),
    }
}

#[test]
fn only_a_difference_is_told() {
    let mut committed = Committed::default();
    assert!(committed.set(&name("web"), Some(&service(&["a"], 1))));
    assert!(!committed.set(&name("web"), Some(&service(&["a"], 1))), "an endpoint elsewhere changed");
    assert!(committed.set(&name("web"), Some(&service(&["a"], 0))));
    assert!(committed.set(&name("web"), Some(&service(&["a", "b"], 0))));
    assert!(committed.set(&name("web"), Some(&service(&["b"], 0))));
    assert_eq!(committed.of_objects.keys().map(|object| &**object).collect::<Vec<_>>(), ["b"]);
    assert!(committed.set(&name("web"), None));
    assert!(!committed.set(&name("web"), None));
    assert_eq!(committed, Committed::default());
}

#[test]
fn a_service_of_no_object_without_health_checks_is_not_kept() {
    let mut committed = Committed::default();
    let plain = CommittedService { objects: Vec::new(), health_check: None };
    assert!(!committed.set(&name("web"), Some(&plain)));
    assert_eq!(committed, Committed::default());
}
