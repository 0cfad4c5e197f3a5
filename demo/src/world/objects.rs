//! The demo's objects.

use isp_lab::ECHO_IMAGE;
use isp_lab::topology::{CLIENT, Families};
use serde_json::{Value, json};

use super::NAMESPACE;

/// The name of the application's Deployment and Service.
pub(super) const APPLICATION: &str = "registry";
/// The path that is open to all clients, and the path that only one range may request.
pub(crate) const OPEN: &str = "/open";
pub(crate) const GUARDED: &str = "/v2";

/// A namespace with the application and a source pod on a non-ingress node. With Istio, the
/// application runs on a non-ingress node behind the gateway; without, on the ingress node behind
/// an external IP.
pub(super) fn application(mesh: bool, asking: &str, asking_node: &str, ingress: &str, other: &str) -> Value {
    let labels = if mesh { json!({"istio-injection": "enabled"}) } else { json!({}) };
    let mut items = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}),
        deployment(if mesh { other } else { ingress }),
        service(mesh),
        asking_pod(asking, asking_node),
    ];
    if mesh {
        items.extend(behind_the_gateway());
    }
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

/// Rolls out without downtime: the new pod is ready before the old one terminates, and the old one
/// keeps serving for 20 s while endpoints are updated: on a busy machine, the gateway learns of
/// them seconds later.
fn deployment(node: &str) -> Value {
    let labels = json!({"app": APPLICATION});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": APPLICATION, "namespace": NAMESPACE},
        "spec": {
            "selector": {"matchLabels": labels},
            "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "template": {
                "metadata": {"labels": labels, "annotations": {"sidecar.istio.io/nativeSidecar": "true"}},
                "spec": {
                    "nodeSelector": {"kubernetes.io/hostname": node},
                    "terminationGracePeriodSeconds": 40,
                    "containers": [{
                        "name": "echo",
                        "image": ECHO_IMAGE,
                        "imagePullPolicy": "Never",
                        "resources": {"requests": {"cpu": "200m"}},
                        "lifecycle": {"preStop": {"sleep": {"seconds": 20}}},
                        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 1},
                    }],
                },
            },
        },
    })
}

fn service(mesh: bool) -> Value {
    let kind = if mesh { "ClusterIP" } else { "LoadBalancer" };
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": APPLICATION, "namespace": NAMESPACE},
        "spec": {
            "type": kind,
            "ipFamilyPolicy": "PreferDualStack",
            "selector": {"app": APPLICATION},
            "ports": [{"name": "http", "port": 80, "targetPort": 8080}],
        },
    })
}

/// It has no sidecar: clients inside the cluster need none.
fn asking_pod(name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"sidecar.istio.io/inject": "false"}},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "echo", "image": ECHO_IMAGE, "imagePullPolicy": "Never"}],
        },
    })
}

/// The route through the gateway, and a policy there that admits one range only.
fn behind_the_gateway() -> [Value; 3] {
    let host = format!("{APPLICATION}.{NAMESPACE}.svc.cluster.local");
    let range = CLIENT.cidrs(Families::Ipv4);
    let gateway = json!({"matchLabels": {"istio": "ingressgateway"}});
    [
        json!({
            "apiVersion": "networking.istio.io/v1", "kind": "Gateway",
            "metadata": {"name": APPLICATION, "namespace": NAMESPACE},
            "spec": {"selector": {"istio": "ingressgateway"}, "servers": [
                {"port": {"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": ["*"]},
            ]},
        }),
        json!({
            "apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
            "metadata": {"name": APPLICATION, "namespace": NAMESPACE},
            "spec": {"hosts": ["*"], "gateways": [APPLICATION], "http": [
                {"route": [{"destination": {"host": host, "port": {"number": 80}}}]},
            ]},
        }),
        json!({
            "apiVersion": "security.istio.io/v1", "kind": "AuthorizationPolicy",
            "metadata": {"name": APPLICATION, "namespace": isp_lab::istio::NAMESPACE},
            "spec": {"selector": gateway, "action": "ALLOW", "rules": [
                {"to": [{"operation": {"paths": [OPEN]}}]},
                {"from": [{"source": {"ipBlocks": range}}], "to": [{"operation": {"paths": [GUARDED]}}]},
            ]},
        }),
    ]
}
