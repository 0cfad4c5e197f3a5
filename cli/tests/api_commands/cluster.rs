//! An API server with the project's definitions, three simulated nodes, a kube-proxy, and Services.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use isp_lab::ControlPlane;
use isp_lab::docs::Block;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The shared one, and what `status` said before the definitions were there.
pub(crate) async fn cluster() -> &'static (&'static ControlPlane, Ended) {
    static CLUSTER: OnceCell<(&ControlPlane, Ended)> = OnceCell::const_new();
    CLUSTER.get_or_init(start).await
}

async fn start() -> (&'static ControlPlane, Ended) {
    let control_plane = ControlPlane::shared().await.unwrap();
    let bare = end(command(&control_plane.kubeconfig(), &["status"])).await;
    let crds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crds").display().to_string();
    kubectl(control_plane, &["apply", "--server-side", "-f", &crds]).await;
    kubectl(control_plane, &["wait", "--for=condition=Established", "--timeout=60s", "-f", &crds]).await;
    control_plane.simulate_nodes().await.unwrap();
    for object in objects() {
        apply(control_plane, &object).await;
    }
    kubectl(control_plane, &["wait", "node", "--all", "--for=condition=Ready", "--timeout=60s"]).await;
    (control_plane, bare)
}

fn objects() -> Vec<Value> {
    let node = |name: &str, labels: Value| {
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        })
    };
    let services = [("frontend", "edge-1"), ("elsewhere", "work-1")];
    let services = services.into_iter().flat_map(|(name, node)| [service(name), slice(name, node)]);
    let mounts = json!([{"name": "config", "mountPath": "/var/lib/kube-proxy"}]);
    let cluster = [
        node("edge-1", json!({"node-role.kubernetes.io/ingress": ""})),
        node("work-1", json!({})),
        node("work-2", json!({})),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "web"}}),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}}),
        // Stands for an operator that runs: it will be renewed in the future.
        lease(SYSTEM, "2099-01-01T00:00:00.000000Z"),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody", "namespace": "web"}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader", "namespace": "web"}}),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-proxy", "namespace": "kube-system"},
            "data": {"config.conf": "clientConnection:\n  kubeconfig: /var/lib/kube-proxy/kubeconfig.conf\n"},
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": "kube-proxy", "namespace": "kube-system", "labels": {"k8s-app": "kube-proxy"}},
            "spec": {
                "selector": {"matchLabels": {"k8s-app": "kube-proxy"}},
                "template": {
                    "metadata": {"labels": {"k8s-app": "kube-proxy"}},
                    "spec": {
                        "containers": [{
                            "name": "kube-proxy", "image": "kube-proxy:1", "volumeMounts": mounts,
                            "command": ["/usr/local/bin/kube-proxy", "--config=/var/lib/kube-proxy/config.conf"],
                        }],
                        "volumes": [{"name": "config", "configMap": {"name": "kube-proxy"}}],
                    },
                },
            },
        }),
    ];
    cluster.into_iter().chain(services).collect()
}

/// Where the operator is installed.
pub(crate) const SYSTEM: &str = "sourcepreserve-system";

/// The operator's Lease, last renewed at this time.
pub(crate) fn lease(namespace: &str, renewed: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "sourcepreserve-operator", "namespace": namespace},
        "spec": {"holderIdentity": "operator-1", "leaseDurationSeconds": 15, "renewTime": renewed},
    })
}

fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "web"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    })
}

/// One ready endpoint on this node.
fn slice(service: &str, node: &str) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {
            "name": service, "namespace": "web", "labels": {"kubernetes.io/service-name": service},
        },
        "ports": [{"port": 8080}],
        "endpoints": [{"addresses": ["10.244.1.5"], "nodeName": node, "conditions": {"ready": true}}],
    })
}

/// What an object of these tests asks for, as YAML. There is no such Service, so nothing would be
/// done for it: plans of other tests stay what they are.
pub(crate) const SPEC: &str = "{ingressNodes: {selector: {matchLabels: {node-role.kubernetes.io/ingress: ''}}}, \
                               services: [{namespace: web, name: absent}]}";

/// What the one command of a block has after `kubectl isp`.
pub(crate) fn typed(block: &Block) -> Vec<String> {
    let [words] = &block.words()[..] else { panic!("one command in {block}") };
    assert_eq!(words[..2], ["kubectl", "isp"], "{block}");
    words[2..].to_vec()
}

pub(crate) fn command<S: AsRef<OsStr>>(kubeconfig: &Path, arguments: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-isp"));
    command.args(arguments).env("KUBECONFIG", kubeconfig).env("LC_ALL", "C.UTF-8");
    command
}

/// Runs it to its end.
pub(crate) async fn end(mut command: Command) -> Ended {
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    ended(output)
}

pub(crate) fn ended(output: Output) -> Ended {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

pub(crate) async fn kubectl(control_plane: &ControlPlane, arguments: &[&str]) -> String {
    let output = control_plane.kubectl(arguments).await.unwrap();
    assert!(output.success, "{output:?}");
    output.stdout
}

pub(crate) async fn apply(control_plane: &ControlPlane, object: &Value) {
    let output = control_plane.kubectl_with_input(&["apply", "-f", "-"], &object.to_string()).await.unwrap();
    assert!(output.success, "{output:?}");
}

pub(crate) async fn set_status(control_plane: &ControlPlane, kind: &str, name: &str, status: &Value) {
    let patch = json!({"status": status}).to_string();
    kubectl(control_plane, &["patch", kind, name, "--subresource=status", "--type=merge", "-p", &patch])
        .await;
}

/// A file of this text, in a directory that goes with it.
pub(crate) fn file(directory: &tempfile::TempDir, text: &str) -> PathBuf {
    let path = directory.path().join("file.yaml");
    std::fs::write(&path, text).unwrap();
    path
}
