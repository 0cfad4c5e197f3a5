use serde_json::{Value, json};

use super::*;

fn facts(pod: Value) -> (Facts, Option<&'static str>) {
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let manifest = Manifest::of(&pod);
    (manifest.facts(&[]), manifest.writer(&[Origin::Istio]))
}

fn claims(facts: &Facts) -> Vec<String> {
    facts.claims.iter().map(|claim| format!("{} by {}", claim.mode.name(), claim.by)).collect()
}

/// A pod as Istio's injector leaves it.
fn injected(mode: &str, inits: &Value) -> Value {
    json!({
        "metadata": {"annotations": {"sidecar.istio.io/interceptionMode": mode}},
        "spec": {
            "initContainers": inits,
            "containers": [
                {"name": "app", "ports": [{"containerPort": 8080}, {"containerPort": 53, "protocol": "UDP"}]},
                {
                    "name": "istio-proxy", "args": ["proxy", "sidecar"],
                    "env": [{"name": "ISTIO_META_INTERCEPTION_MODE", "value": "REDIRECT"}],
                    "securityContext": {"runAsUser": 1337, "runAsGroup": 1337},
                },
            ],
        },
    })
}

#[test]
fn the_annotation_the_proxy_and_the_init_container_each_claim_a_mode() {
    let init = json!([{"name": "istio-init", "args": ["istio-iptables", "-m", "REDIRECT"]}]);
    let (found, writer) = facts(injected("TPROXY", &init));
    assert_eq!(
        claims(&found),
        [
            "TPROXY by annotation sidecar.istio.io/interceptionMode",
            "REDIRECT by container istio-proxy",
            "REDIRECT by init container istio-init",
        ]
    );
    assert_eq!(writer, Some("init container istio-init"));
    assert_eq!(found.proxies, [Process { container: "istio-proxy".to_owned(), uid: 1337, gid: 1337 }]);
    assert_eq!((found.applications.len(), found.ports), (0, vec![8080]));
}

#[test]
fn without_the_init_container_the_cni_plugin_has_written_the_rules() {
    let (found, writer) = facts(injected("REDIRECT", &json!([{"name": "istio-validation"}])));
    assert_eq!(writer, Some("Istio's CNI plugin"));
    assert_eq!(found.claims.len(), 2);
}

#[test]
fn our_init_container_claims_a_mode_exempts_the_proxy_and_leaves_ports_out() {
    let (found, _) = facts(json!({
        "metadata": {},
        "spec": {
            "securityContext": {"runAsUser": 1000},
            "initContainers": [
                {"name": "pod-redirect", "args": [
                    "--inbound-method=TPROXY", "--inbound-port=15006", "--inbound-ports=8000-8999",
                    "--inbound-except-ports=8500", "--outbound-port=15001", "--exempt-uids=101",
                ]},
                {"name": "envoy", "restartPolicy": "Always", "securityContext": {"runAsUser": 101}},
            ],
            "containers": [{"name": "app"}],
        },
    }));
    assert_eq!(claims(&found), ["TPROXY by init container pod-redirect"]);
    let process = |container: &str, uid| Process { container: container.to_owned(), uid, gid: 0 };
    assert_eq!(
        (found.proxies, found.applications),
        (vec![process("envoy", 101)], vec![process("app", 1000)])
    );
    assert_eq!(found.left_out, [(8500, 8500), (0, 7999), (9000, u16::MAX)]);
}

#[test]
fn annotations_leave_ports_out() {
    let pod = |annotations: Value| json!({"metadata": {"annotations": annotations}});
    let (found, _) = facts(pod(json!({EXCLUDED_PORTS: "22, 9090", INCLUDED_PORTS: "*"})));
    assert_eq!(found.left_out, [(22, 22), (9090, 9090)]);
    let (found, _) = facts(pod(json!({INCLUDED_PORTS: "80,443"})));
    assert_eq!(found.left_out, [(0, 79), (81, 442), (444, u16::MAX)]);
}

#[test]
fn the_ports_outside_of_ranges_are_found_even_if_they_overlap() {
    assert_eq!(others(vec![]), [(0, u16::MAX)]);
    assert_eq!(others(vec![(5, u16::MAX), (6, 7)]), [(0, 4)]);
    assert_eq!(others(vec![(0, 10), (5, 20)]), [(21, u16::MAX)]);
}
