//! `check` against a real API server before anything is installed: without CRDs, and with accounts
//! that may read some kinds only. The object that it proposes passes the API server's validation.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::path::{Path, PathBuf};

use isp_lab::ControlPlane;
use isp_testkit::accounts;
use isp_testkit::control_plane::{apply, install_crds, kubectl};
use isp_testkit::kube_proxy;
use isp_testkit::plugin::{Ended, command, end};
use isp_testkit::schema::assert_output;
use serde_json::{Value, json};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_kubectl-isp");

/// The configuration of kube-proxy with the header that kube-proxy asks for.
fn configuration() -> Value {
    let mut map = kube_proxy::configuration();
    let text = map["data"]["config.conf"].as_str().unwrap().to_owned();
    let header = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";
    map["data"]["config.conf"] = json!(format!("{header}{text}"));
    map
}

/// Two nodes, a kube-proxy, and a Service with an endpoint on one of the nodes.
fn objects() -> Vec<Value> {
    let node = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        })
    };
    let account = |name: &str| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "web"}});
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "web"}}),
        account("nobody"),
        account("reader"),
        node("edge-1"),
        node("work-1"),
        configuration(),
        kube_proxy::daemon_set(None),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "frontend", "namespace": "web"},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
        }),
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {
                "name": "frontend", "namespace": "web", "labels": {"kubernetes.io/service-name": "frontend"},
            },
            "ports": [{"port": 8080}],
            "endpoints": [{"addresses": ["10.244.1.5"], "nodeName": "edge-1", "conditions": {"ready": true}}],
        }),
    ]
}

async fn run(config: &Path, arguments: &[&str]) -> Ended {
    end(command(PROGRAM, config, &[&["check"], arguments].concat())).await
}

async fn check(config: &Path) -> (Option<i32>, Value) {
    let ended = run(config, &["-o", "json"]).await;
    assert_eq!(ended.stderr, "");
    let told = serde_json::from_str(&ended.stdout).unwrap();
    assert_output("check", &told);
    (ended.code, told)
}

async fn account(control_plane: &ControlPlane, name: &str, directory: &Path) -> PathBuf {
    let path = directory.join(name);
    control_plane.write_kubeconfig_of("web", name, &path).await.unwrap();
    path
}

/// The subjects of the section about rights.
fn missing(check: &Value) -> Vec<&str> {
    let checks = check["sections"][0]["checks"].as_array().unwrap();
    checks.iter().filter_map(|line| line["subject"].as_str()).collect()
}

async fn an_administrator_gets_the_whole_answer(control_plane: &ControlPlane) {
    let (code, told) = check(&control_plane.kubeconfig()).await;
    assert_eq!(code, Some(2), "{told:#}");
    assert!(told["kubernetes"].as_str().unwrap().starts_with("v1."), "{told:#}");
    assert_eq!(missing(&told), Vec::<&str>::new(), "{told:#}");
    let service = &told["sections"][2]["checks"][0];
    assert_eq!((&service["subject"], &service["code"]), (&"Service web/frontend".into(), &"ISP307".into()));
    assert_eq!((&told["fit"]["mode"], &told["fit"]["filter"]["answer"]), (&"Filter".into(), &"yes".into()));
    let label = "kubectl label node edge-1 node-role.kubernetes.io/ingress=";
    assert_eq!(told["proposal"]["commands"], json!([label]), "{told:#}");
}

async fn an_account_without_rights_is_told_which_one_it_needs(nobody: &Path) {
    let ended = run(nobody, &[]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert!(ended.stderr.contains("the right to list services:"), "{}", ended.stderr);
}

/// `installed`: whether the API server has the CRDs, which this account may not list.
async fn an_account_with_few_rights_is_told_what_it_cannot_tell(reader: &Path, installed: bool) {
    let (code, told) = check(reader).await;
    // Without pods no policy can be judged, and the Service loses the source IP.
    assert_eq!(code, Some(2), "{told:#}");
    let missing = missing(&told);
    for kind in ["Kind Node", "Kind Pod", "Kind DaemonSet", "Kind NetworkPolicy", "Kind Namespace"] {
        assert!(missing.contains(&kind), "{kind}: {told:#}");
    }
    assert!(!missing.contains(&"Kind Service") && !missing.contains(&"Kind EndpointSlice"), "{told:#}");
    // A kind that the API server does not have is not missed.
    assert!(!missing.contains(&"Kind AuthorizationPolicy"), "{told:#}");
    assert_eq!(missing.contains(&"Kind IngressSourcePreserve"), installed, "{told:#}");
    assert_eq!((&told["fit"]["mode"], &told["proposal"]), (&Value::Null, &Value::Null), "{told:#}");
    assert_eq!(told["fit"]["filter"]["answer"], "unknown", "{told:#}");
    assert_eq!(told["sections"][2]["checks"][0]["state"], "failed", "{told:#}");
}

async fn the_api_server_accepts_the_proposed_object(control_plane: &ControlPlane, directory: &Path) {
    let path = directory.join("isp.yaml");
    let file = path.to_str().unwrap();
    let ended = run(&control_plane.kubeconfig(), &["--write", file]).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(2), ""), "{}", ended.stdout);
    let answer = kubectl(control_plane, &["apply", "--dry-run=server", "-f", file, "-o", "json"]).await;
    let object: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(object["spec"]["services"], json!([{"namespace": "web", "name": "frontend"}]), "{object:#}");
    assert_eq!(object["spec"]["mode"], "Filter");
}

#[tokio::test]
async fn a_cluster_is_checked_without_the_crds_and_with_few_rights() {
    let control_plane = ControlPlane::shared().await.unwrap();
    control_plane.simulate_nodes().await.unwrap();
    for object in objects() {
        apply(control_plane, &object).await;
    }
    let directory = tempfile::tempdir().unwrap();
    an_administrator_gets_the_whole_answer(control_plane).await;
    let nobody = account(control_plane, "nobody", directory.path()).await;
    an_account_without_rights_is_told_which_one_it_needs(&nobody).await;
    let list =
        |group: &str, kind: &str| json!({"apiGroups": [group], "resources": [kind], "verbs": ["list"]});
    let rules = json!([list("", "services"), list("discovery.k8s.io", "endpointslices")]);
    accounts::grant(control_plane, ("web", "reader"), &rules).await;
    let reader = account(control_plane, "reader", directory.path()).await;
    an_account_with_few_rights_is_told_what_it_cannot_tell(&reader, false).await;
    install_crds(control_plane).await;
    an_account_with_few_rights_is_told_what_it_cannot_tell(&reader, true).await;
    the_api_server_accepts_the_proposed_object(control_plane, directory.path()).await;
}
