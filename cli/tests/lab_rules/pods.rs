//! The pods, as manifests.

use isp_lab::ECHO_IMAGE;
use serde_json::{Value, json};

use super::world::IMAGE;

pub(crate) fn all(node: &str) -> Vec<Value> {
    let namespace = |name: &str, labels: Value| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    let pod = |name: &str, annotations: Value, spec: Value| {
        let (namespace, name) = name.split_once('/').unwrap();
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": namespace, "name": name, "annotations": annotations, "labels": {"app": name}},
            "spec": {"nodeName": node, "terminationGracePeriodSeconds": 1, "containers": [application()]},
        });
        pod["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        pod
    };
    let mode = |mode: &str| json!({"sidecar.istio.io/interceptionMode": mode});
    let ours = json!({"initContainers": [{
        "name": "pod-redirect", "image": IMAGE, "imagePullPolicy": "Never",
        "args": [
            "--inbound-method=TPROXY", "--inbound-port=15006", "--outbound-port=15001", "--exempt-gids=1337",
        ],
        "securityContext": {"runAsUser": 0, "capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]}},
    }]});
    vec![
        namespace("shop", json!({"istio-injection": "enabled"})),
        namespace("plain", json!({})),
        namespace("restricted", json!({"pod-security.kubernetes.io/enforce": "restricted"})),
        pod("shop/redirect", json!({}), json!({})),
        pod("shop/tproxy", mode("TPROXY"), json!({})),
        pod("plain/cni", mode("REDIRECT"), json!({"containers": [application(), istio_proxy()]})),
        pod("plain/ours", json!({}), ours),
        pod("plain/none", json!({}), json!({})),
        pod("plain/host", json!({}), json!({"hostNetwork": true, "containers": [sleeping()]})),
    ]
}

fn application() -> Value {
    json!({
        "name": "echo", "image": ECHO_IMAGE, "imagePullPolicy": "Never",
        "ports": [{"containerPort": 8080}],
        "securityContext": {"runAsUser": 2000, "runAsGroup": 2000},
    })
}

/// A container that uses ports that nobody else on the node does.
fn sleeping() -> Value {
    json!({
        "name": "echo", "image": ECHO_IMAGE, "imagePullPolicy": "Never",
        "args": ["--http", "18080", "--tcp", "18081", "--udp", "18082"],
    })
}

/// In place of the proxy of a pod whose rules Istio's CNI plugin writes. It only has to stay.
fn istio_proxy() -> Value {
    json!({
        "name": "istio-proxy", "image": ECHO_IMAGE, "imagePullPolicy": "Never",
        "command": ["/echo", "pause"],
        "securityContext": {"runAsUser": 1337, "runAsGroup": 1337},
    })
}
