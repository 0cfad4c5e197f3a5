//! Faults of a mesh: sidecars, gateways and policies, each a change of a healthy cluster.

use serde_json::{Value, json};

use super::faults::{Fault, GATEWAY, in_mode, remove, replace, service};
use super::world::World;
use crate::doctor::finding::Code;

pub(super) const MESH: &[Fault] = &[
    ("the annotation came too late", Code::AnnotationLies, |world| {
        in_mode(world, "REDIRECT");
        let annotations = &mut world.the("Pod", "cart-")["metadata"]["annotations"];
        annotations["sidecar.istio.io/interceptionMode"] = json!("TPROXY");
    }),
    ("stale", Code::SidecarsStale, |world| {
        in_mode(world, "REDIRECT");
        remove(
            &mut world.the("Pod", "cart-")["metadata"]["annotations"],
            "sidecar.istio.io/interceptionMode",
        );
    }),
    ("the author has chosen", Code::ModeChosen, |world| in_mode(world, "REDIRECT")),
    ("Pod Security refuses", Code::PodSecurityRefuses, |world| {
        world.the("Namespace", "shop")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] =
            json!("restricted");
    }),
    ("trusted proxies of the mesh", Code::TrustedProxies, |world| {
        replace(
            &mut world.the("ConfigMap", "istio")["data"]["mesh"],
            "defaultConfig:\n",
            "defaultConfig:\n  gatewayTopology: {numTrustedProxies: 1}\n",
        );
    }),
    ("trusted proxies of the pod", Code::TrustedProxies, |world| {
        let annotations = &mut world.the("Pod", GATEWAY)["metadata"]["annotations"];
        annotations["proxy.istio.io/config"] = json!("gatewayTopology: {numTrustedProxies: 2}");
    }),
    ("trusted hops by a patch", Code::TrustedProxies, |world| {
        world.add(filter("istio-system", &json!({"xff_num_trusted_hops": 1})));
    }),
    ("a header by a patch", Code::TrustedProxies, |world| {
        world.add(filter("istio-system", &json!({"use_remote_address": false})));
    }),
    ("the PROXY protocol by a patch", Code::ProxyProtocol, |world| {
        world.add(filter("istio-system", &json!({"name": "envoy.filters.listener.proxy_protocol"})));
    }),
    ("the PROXY protocol by the pod", Code::ProxyProtocol, |world| {
        let annotations = &mut world.the("Pod", GATEWAY)["metadata"]["annotations"];
        annotations["proxy.istio.io/config"] = json!("gatewayTopology: {proxyProtocol: {}}");
    }),
    ("a sidecar that goes by the gateway's address", Code::PolicyOpen, |world| {
        let policy = policy_of(world, "shop");
        policy["spec"]["rules"] = json!([{"when": [{"key": "source.ip", "values": ["203.0.113.0/24"]}]}]);
    }),
    ("a sidecar that goes by addresses of a private network", Code::PolicyUnknown, |world| {
        let policy = policy_of(world, "shop");
        policy["spec"]["rules"] = json!([{"when": [{"key": "source.ip", "values": ["10.20.0.0/16"]}]}]);
    }),
    ("a range of a policy that is none", Code::PolicyRangeUnreadable, |world| {
        let policy = policy_of(world, "shop");
        policy["spec"]["rules"] = json!([{"from": [{"source": {"remoteIpBlocks": ["203.0.113.0/240"]}}]}]);
    }),
    ("a policy that selects nobody", Code::PolicyNotEnforced, |world| {
        policy_of(world, "shop")["spec"]["selector"] = json!({"matchLabels": {"app": "crat"}});
    }),
    ("a second way in that nobody preserves", Code::PolicyOpen, |world| {
        let mut second = service(world).clone();
        second["metadata"] = json!({"name": "node-ports", "namespace": "istio-system"});
        second["spec"]["type"] = json!("NodePort");
        second["spec"]["externalTrafficPolicy"] = json!("Cluster");
        world.add(second);
    }),
];

fn policy_of<'a>(world: &'a mut World, namespace: &str) -> &'a mut Value {
    // Both have the same name; the other one's goes first.
    let other = if namespace == "shop" { "istio-system" } else { "shop" };
    world.rename("AuthorizationPolicy", other, "clients", "others");
    world.the("AuthorizationPolicy", "clients")
}

fn filter(namespace: &str, value: &Value) -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1alpha3", "kind": "EnvoyFilter",
        "metadata": {"name": "patch", "namespace": namespace},
        "spec": {
            "workloadSelector": {"labels": {"istio": "ingressgateway"}},
            "configPatches": [{"applyTo": "LISTENER_FILTER", "patch": {"operation": "INSERT_FIRST", "value": value}}],
        },
    })
}
