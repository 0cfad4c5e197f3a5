//! `kubectl isp` as a process, and a cluster for it: an API server with the CRDs, three simulated
//! nodes, a kube-proxy, and Services.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use isp_lab::ControlPlane;
use isp_lab::docs::Block;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::control_plane::{SYSTEM, apply, install_crds, kubectl};
use crate::{kube_proxy, repository};

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// Its stdout.
    pub stdout: String,
    /// Its stderr.
    pub stderr: String,
}

/// The cluster that the tests of this program share, and the result of `status` before the CRDs
/// were installed.
pub async fn cluster(plugin: &str) -> &'static (&'static ControlPlane, Ended) {
    static CLUSTER: OnceCell<(&ControlPlane, Ended)> = OnceCell::const_new();
    CLUSTER.get_or_init(async || start(plugin).await).await
}

async fn start(plugin: &str) -> (&'static ControlPlane, Ended) {
    let control_plane = ControlPlane::shared().await.unwrap();
    let bare = end(command(plugin, &control_plane.kubeconfig(), &["status"])).await;
    install_crds(control_plane).await;
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
    let cluster = [
        node("edge-1", json!({"node-role.kubernetes.io/ingress": ""})),
        node("work-1", json!({})),
        node("work-2", json!({})),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "web"}}),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}}),
        // Shows a running operator: the Lease was last renewed in the future.
        lease(SYSTEM, "2099-01-01T00:00:00.000000Z"),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody", "namespace": "web"}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader", "namespace": "web"}}),
        kube_proxy::configuration(),
        kube_proxy::daemon_set(None),
    ];
    cluster.into_iter().chain(services).collect()
}

/// The operator's Lease, last renewed at this time.
pub fn lease(namespace: &str, renewed: &str) -> Value {
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

/// The spec of an object for a Service that does not exist, as YAML. Nothing is done for it, so the
/// plans of other tests do not change.
pub const SPEC: &str = "{ingressNodes: {selector: {matchLabels: {node-role.kubernetes.io/ingress: ''}}}, \
                               services: [{namespace: web, name: absent}]}";

/// The arguments after `kubectl isp` in a block of one command.
pub fn typed(block: &Block) -> Vec<String> {
    let [words] = &block.words()[..] else { panic!("one command in {block}") };
    assert_eq!(words[..2], ["kubectl", "isp"], "{block}");
    words[2..].to_vec()
}

/// A command of the plugin.
pub fn command<S: AsRef<OsStr>>(plugin: &str, kubeconfig: &Path, arguments: &[S]) -> Command {
    let mut command = Command::new(plugin);
    command.args(arguments).env("KUBECONFIG", kubeconfig).env("LC_ALL", "C.UTF-8");
    command
}

/// A dump that the tests keep.
pub fn dump(name: &str) -> PathBuf {
    repository::file("cli/tests/doctor").join(name)
}

/// A command of the plugin on a dump. There is no cluster.
pub fn on_dump(plugin: &str, name: &str, dump: &Path, arguments: &[&str]) -> Command {
    let mut command = command(plugin, Path::new("/nowhere/kubeconfig"), &[name]);
    command.args(arguments).arg("--from-dir").arg(dump);
    command
}

/// Runs a command and sends it a signal after a while. Returns how it ended, and whether it was
/// still there for the signal. Before it listens, a signal just ends it.
pub async fn interrupt(mut command: Command, signal: &'static str, after: Duration) -> (Ended, bool) {
    let run = move || {
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        thread::sleep(after);
        let id = child.id().to_string();
        let sent = Command::new("kill").args([format!("-{signal}"), id]).output().unwrap();
        (ended(child.wait_with_output().unwrap()), sent.status.success())
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}

/// Runs a command to its end.
pub async fn end(mut command: Command) -> Ended {
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    ended(output)
}

/// The result of a command.
pub fn ended(output: Output) -> Ended {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Writes the status of an object.
pub async fn set_status(control_plane: &ControlPlane, kind: &str, name: &str, status: &Value) {
    let patch = json!({"status": status}).to_string();
    kubectl(control_plane, &["patch", kind, name, "--subresource=status", "--type=merge", "-p", &patch])
        .await;
}

/// A file of this text, in a directory that goes with it.
pub fn file(directory: &tempfile::TempDir, text: &str) -> PathBuf {
    let path = directory.path().join("file.yaml");
    std::fs::write(&path, text).unwrap();
    path
}
