//! A cluster with thousands of exposed Services and policies: the report stays short and fast.

use std::time::{Duration, Instant};

use serde_json::json;

use super::world::World;
use crate::doctor::examine::examine;
use crate::doctor::finding::Code;
use crate::doctor::report;

const MANY: usize = 1000;

#[test]
fn thousands_of_services_and_policies_make_a_short_report() {
    let mut world = World::of("untouched");
    let service = world.the("Service", "cart").clone();
    let pod = world.the("Pod", "cart-").clone();
    for number in 0..MANY {
        let (mut service, mut pod) = (service.clone(), pod.clone());
        let labels = json!({"app": format!("app-{number}")});
        service["metadata"] = json!({"name": format!("app-{number}"), "namespace": "shop"});
        service["spec"]["type"] = json!("NodePort");
        service["spec"]["externalTrafficPolicy"] = json!("Cluster");
        service["spec"]["selector"] = labels.clone();
        pod["metadata"]["name"] = json!(format!("app-{number}-1"));
        pod["metadata"]["labels"] = labels.clone();
        world.add(service);
        world.add(pod);
        if number % 4 == 0 {
            let rules = json!([{"from": [{"source": {"ipBlocks": ["203.0.113.0/24"]}}]}]);
            world.add(json!({
                "apiVersion": "security.istio.io/v1", "kind": "AuthorizationPolicy",
                "metadata": {"name": format!("policy-{number}"), "namespace": "shop"},
                "spec": {"action": "DENY", "selector": {"matchLabels": labels}, "rules": rules},
            }));
        }
    }
    let rules = json!([{"from": [{"source": {"ipBlocks": ["203.0.113.0/24"]}}]}]);
    world.add(json!({
        "apiVersion": "security.istio.io/v1", "kind": "AuthorizationPolicy",
        "metadata": {"name": "everywhere", "namespace": "istio-system"}, "spec": {"action": "DENY", "rules": rules},
    }));
    let (cluster, now) = world.read();
    let started = Instant::now();
    let examination = examine(&cluster, None, now);
    let text = report::text(&cluster, &examination, None);
    let found = examination.findings;
    assert!(started.elapsed() < Duration::from_mins(1), "{:?}", started.elapsed());
    let open = found.iter().filter(|finding| finding.code == Code::PolicyOpen).count();
    assert_eq!(open, MANY / 4 + 2, "each policy is found");
    assert!(text.len() < 40_000, "{} bytes", text.len());
    assert!(text.contains(&format!("; and through {} more Services", MANY - 2)), "{text}");
    let others = format!("error ISP701  the same for {} more: AuthorizationPolicy shop/policy-", open - 10);
    assert!(text.contains(&others), "{text}");
    let counted = format!("{0} of {0} exposed Services lose the client's source IP: ", MANY + 2);
    assert!(text.contains(&counted), "{text}");
    assert!(text.lines().all(|line| line.len() < 1500), "no line is without an end");
}
