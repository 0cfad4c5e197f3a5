use serde_json::json;

use super::*;

#[test]
fn the_application_logs_and_not_its_sidecar_and_a_gateway_is_a_proxy_alone() {
    for (containers, init_containers, expected) in [
        (json!([{"name": "istio-proxy"}]), json!([]), "istio-proxy"),
        (json!([{"name": "istio-proxy"}, {"name": "nginx"}]), json!([]), "nginx"),
        (json!([{"name": "nginx"}]), json!([{"name": "istio-proxy", "restartPolicy": "Always"}]), "nginx"),
        (json!([{"name": "haproxy"}, {"name": "exporter"}]), json!([]), "haproxy"),
    ] {
        let pod = json!({"containers": containers, "initContainers": init_containers});
        let pod: PodSpec = serde_json::from_value(pod).unwrap();
        assert_eq!(logger(&pod).map(|container| container.name.as_str()), Some(expected));
    }
}
