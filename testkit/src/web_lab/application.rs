//! The application: a pod on the ingress node, its Service with external IPs, and client pods on
//! the non-ingress nodes.

use isp_lab::{ECHO_IMAGE, EchoApp, Lab};
use serde_json::json;

use super::{EDGE, ELSEWHERE};

/// The external IP that the router sends to the ingress node.
pub const EXTERNAL: &str = "192.0.2.50";
/// An external IP of the Service that the router does not route: a response came from the client's
/// own node.
pub const UNROUTED: &str = "192.0.2.51";
/// The node port of HTTP; the next one is raw TCP.
pub const NODE_PORT: u16 = 30080;
/// The path of the Service on the API server.
pub const SERVICE: &str = "/api/v1/namespaces/web/services/frontend";

pub(super) async fn run(lab: &Lab) {
    lab.kubectl(["create", "namespace", "web"]).await.unwrap();
    // Like an ingress: without a CPU request the application would starve first on a busy machine.
    let share = json!({
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "share", "namespace": "web"},
        "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "1"}}]},
    });
    lab.apply(&share.to_string()).await.unwrap();
    serve(lab).await;

    let pods = ELSEWHERE.map(|node| {
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": format!("asks-from-{node}"), "namespace": "default"},
            "spec": {
                "nodeSelector": {"kubernetes.io/hostname": node},
                "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "echo", "image": ECHO_IMAGE, "imagePullPolicy": "Never"}],
            },
        })
    });
    lab.apply(&json!({"apiVersion": "v1", "kind": "List", "items": pods}).to_string()).await.unwrap();
    lab.kubectl(["wait", "--for=condition=Ready", "pod", "--all", "--timeout=60s"]).await.unwrap();
}

/// Runs the application in the namespace `web`, with its external IPs.
pub async fn serve(lab: &Lab) {
    let app =
        EchoApp { name: "frontend", namespace: "web", node: EDGE, node_port: NODE_PORT, annotations: &[] };
    lab.run_echo(&app).await.unwrap();
    let external = json!({"spec": {"externalIPs": [EXTERNAL, UNROUTED]}}).to_string();
    lab.kubectl(["-n", "web", "patch", "service", "frontend", "-p", &external]).await.unwrap();
    lab.route(EXTERNAL.parse().unwrap(), &[EDGE]).await.unwrap();
}
