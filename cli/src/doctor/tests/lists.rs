//! Lists of addresses beside Istio's policies, on a cluster on which nobody has asked for anything.

use serde_json::{Value, json};

use super::world::{World, bare, expect, policy, with};
use crate::doctor::finding::{Code, Finding};

const OUTSIDE: &str = "203.0.113.0/24";

fn network_policy(namespace: &str, name: &str, ingress: &Value) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": name, "namespace": namespace},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": ingress},
    })
}

fn block(cidr: &str, except: &[&str]) -> Value {
    json!([{"from": [{"ipBlock": {"cidr": cidr, "except": except}}]}])
}

fn guarded(ingress: &Value) -> World {
    let mut world = bare();
    world.add(network_policy("plain", "clients", ingress));
    world
}

#[test]
fn a_network_policy_before_a_service_that_loses_the_address_fails() {
    let found = expect(&guarded(&block(OUTSIDE, &[])), &[Code::PolicyClosed]);
    assert_eq!(found[0].subject.to_string(), "NetworkPolicy plain/clients");
    assert_eq!(
        found[0].line,
        "ALLOW fails closed: ipBlock sees a node's address, at the pods of Service plain/echo (externalTrafficPolicy Cluster)"
    );
    expect(&guarded(&block("0.0.0.0/0", &[OUTSIDE])), &[Code::PolicyOpen]);
    expect(&guarded(&block("10.0.0.0/8", &[])), &[Code::PolicyOpen]);
    expect(&guarded(&block("0.0.0.0/0", &[])), &[]);
    expect(&guarded(&json!([{"from": [{"podSelector": {}}]}])), &[]);
}

#[test]
fn a_network_policy_is_right_where_the_address_is_kept_or_does_not_decide() {
    let world = guarded(&block("0.0.0.0/0", &[OUTSIDE]));
    let mut kept = world.clone();
    kept.the("Service", "echo")["spec"]["externalTrafficPolicy"] = json!("Local");
    expect(&kept, &[]);
    let mut open = world.clone();
    open.add(network_policy("plain", "everybody", &json!([{}])));
    expect(&open, &[]);
    let mut of_node = world.clone();
    of_node.the("Pod", "echo")["spec"]["hostNetwork"] = json!(true);
    expect(&of_node, &[]);
    let mut elsewhere = bare();
    elsewhere.add(network_policy("shop", "clients", &block(OUTSIDE, &[])));
    expect(&elsewhere, &[]);
}

/// A controller of Ingresses in its own namespace, at an address of its own.
fn controller(world: &mut World, name: &str, address: &str, policy: &str) {
    let labels = json!({"app.kubernetes.io/name": "ingress-nginx", "app.kubernetes.io/component": "controller", "app.kubernetes.io/instance": name});
    world.add(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("{name}-1"), "namespace": "edge", "labels": labels},
        "spec": {"nodeName": "edge-1", "containers": [{
            "name": "controller", "image": "controller:1",
            "args": ["/nginx-ingress-controller", format!("--configmap=$(POD_NAMESPACE)/{name}")],
        }]},
    }));
    world.add(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "edge"},
        "spec": {"type": "LoadBalancer", "externalTrafficPolicy": policy, "selector": labels, "ports": [{"port": 80}]},
        "status": {"loadBalancer": {"ingress": [{"ip": address}]}},
    }));
}

fn ingress(annotation: &str, ranges: &str, address: &str) -> Value {
    let backend = json!({"service": {"name": "cart", "port": {"number": 80}}});
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": "shop", "namespace": "shop", "annotations": {annotation: ranges}},
        "spec": {"rules": [{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}]},
        "status": {"loadBalancer": {"ingress": [{"ip": address}]}},
    })
}

const ALLOW: &str = "nginx.ingress.kubernetes.io/whitelist-source-range";
const DENY: &str = "nginx.ingress.kubernetes.io/denylist-source-range";

#[test]
fn the_list_of_an_ingress_fails_where_its_controller_does_not_see_the_client() {
    for (annotation, code) in [(ALLOW, Code::PolicyClosed), (DENY, Code::PolicyOpen)] {
        let mut world = bare();
        controller(&mut world, "public", "192.0.2.20", "Cluster");
        world.add(ingress(annotation, "198.51.100.7, 203.0.113.0/24", "192.0.2.20"));
        let found = expect(&world, &[code]);
        assert_eq!(found[0].subject.to_string(), "Ingress shop/shop");
        assert!(
            found[0].line.contains("at the ingress controller of Service edge/public"),
            "{}",
            found[0].line
        );
        world.the("Service", "public")["spec"]["externalTrafficPolicy"] = json!("Local");
        expect(&world, &[]);
    }
}

#[test]
fn an_ingress_belongs_to_the_controller_at_its_address() {
    let mut world = bare();
    controller(&mut world, "public", "192.0.2.20", "Local");
    controller(&mut world, "internal", "192.0.2.21", "Cluster");
    world.add(ingress(DENY, OUTSIDE, "192.0.2.20"));
    expect(&world, &[]);
    // Where the address is not one of theirs, either may serve it.
    world.the("Ingress", "shop")["status"]["loadBalancer"]["ingress"][0]["ip"] = json!("10.90.0.11");
    let found = expect(&world, &[Code::PolicyOpen]);
    assert!(
        found[0].line.contains("edge/internal") && !found[0].line.contains("edge/public"),
        "{}",
        found[0].line
    );
}

#[test]
fn settings_of_a_controller_say_whom_it_believes_and_whom_it_lets_in() {
    let settings = |data: Value| {
        let mut world = bare();
        controller(&mut world, "public", "192.0.2.20", "Cluster");
        world.add(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "public", "namespace": "edge"}, "data": data}));
        world
    };
    let found = expect(&settings(json!({"block-cidrs": OUTSIDE})), &[Code::PolicyOpen]);
    assert_eq!(found[0].subject.to_string(), "ConfigMap edge/public");
    expect(&settings(json!({"block-cidrs": OUTSIDE, "use-proxy-protocol": "true"})), &[]);
    expect(&settings(json!({"whitelist-source-range": OUTSIDE, "use-forwarded-headers": "true"})), &[]);
    expect(
        &settings(json!({"whitelist-source-range": OUTSIDE, "use-forwarded-headers": "false"})),
        &[Code::PolicyClosed],
    );
}

#[test]
fn a_list_whose_controller_is_not_found_is_told() {
    let mut world = bare();
    world.add(ingress(ALLOW, OUTSIDE, "192.0.2.20"));
    expect(&world, &[Code::PolicyNotEnforced]);
    world.the("Ingress", "shop")["metadata"]["annotations"] = json!({"a": "b"});
    expect(&world, &[]);
}

#[test]
fn a_sidecar_behind_a_controller_sees_what_the_controller_writes() {
    let spec = json!({"action": "DENY", "rules": [{"from": [{"source": {"remoteIpBlocks": [OUTSIDE]}}]}]});
    let mut world = with("shop", &spec);
    controller(&mut world, "public", "192.0.2.20", "Cluster");
    world.add(ingress("a", "b", "192.0.2.20"));
    let found = expect(&world, &[Code::PolicyOpen]);
    assert!(
        found[0].line.contains("behind the ingress controller of Service edge/public"),
        "{}",
        found[0].line
    );
    assert!(!found[0].line.contains("istio-ingressgateway"), "no route leads from there: {}", found[0].line);
}

fn ambient(world: &mut World) {
    let pod = world.the("Pod", "echo");
    pod["metadata"]["annotations"]["ambient.istio.io/redirection"] = json!("enabled");
}

#[test]
fn ztunnel_sees_the_peer_and_nothing_else() {
    let found = |source: Value, expected: &[Code]| -> Vec<Finding> {
        let mut world = bare();
        ambient(&mut world);
        world.add(policy("plain", &json!({"action": "DENY", "rules": [{"from": [{"source": source}]}]})));
        expect(&world, expected)
    };
    let open = found(json!({"ipBlocks": [OUTSIDE]}), &[Code::PolicyOpen]);
    assert!(open[0].line.contains("at the ztunnel of Service plain/echo"), "{}", open[0].line);
    let closed = found(json!({"remoteIpBlocks": [OUTSIDE]}), &[Code::PolicyClosed]);
    assert!(closed[0].line.contains("ztunnel supports only ipBlocks"), "{}", closed[0].line);
}

#[test]
fn a_policy_that_only_logs_is_misled() {
    let mut object = policy(
        "shop",
        &json!({"action": "DENY", "rules": [{"from": [{"source": {"remoteIpBlocks": [OUTSIDE]}}]}]}),
    );
    object["metadata"]["annotations"] = json!({"istio.io/dry-run": "true"});
    let mut world = bare();
    world.add(object);
    expect(&world, &[Code::PolicyMisled]);
}
