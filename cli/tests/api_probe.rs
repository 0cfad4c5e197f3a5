//! `kubectl isp probe` against a real API server with Pod Security, on simulated nodes: what it
//! creates is admitted, rights are asked for first, and a signal leaves nothing behind.

#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::process::Stdio;

use isp_lab::ControlPlane;
use isp_testkit::accounts::grant;
use isp_testkit::control_plane::{apply, kubectl};
use isp_testkit::plugin::{self, command, end};
use isp_testkit::until;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_kubectl-isp");
const PROBE: [&str; 6] =
    ["probe", "--service", "web/frontend", "--yes", "--from-here=false", "--image=probe:1"];
const LABEL: &str = "app.kubernetes.io/name=isp-probe";

async fn pods(control_plane: &ControlPlane) -> Vec<Pod> {
    let pods: Api<Pod> = Api::all(control_plane.client().unwrap());
    pods.list(&ListParams::default().labels(LABEL)).await.unwrap().items
}

async fn services(control_plane: &ControlPlane) -> Vec<Service> {
    let services: Api<Service> = Api::all(control_plane.client().unwrap());
    services.list(&ListParams::default().labels(LABEL)).await.unwrap().items
}

#[tokio::test]
async fn a_restricted_namespace_admits_the_target_and_a_signal_leaves_nothing_behind() {
    let (control_plane, _) = plugin::cluster(PROGRAM).await;
    // No controller creates it here, and pods need one.
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "web"}});
    apply(control_plane, &account).await;
    let restricted = "pod-security.kubernetes.io/enforce=restricted";
    kubectl(control_plane, &["label", "namespace", "web", "--overwrite", restricted]).await;
    let mut probe = command(PROGRAM, &control_plane.kubeconfig(), &PROBE);
    let mut probe = probe.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let target = until("the target is admitted", async || {
        if probe.try_wait().unwrap().is_some() {
            return Err("the command has ended");
        }
        let mut found = pods(control_plane).await;
        if found.is_empty() { Err("no pod") } else { Ok(found.remove(0)) }
    })
    .await;
    assert_eq!(target.metadata.namespace.as_deref(), Some("web"));
    let spec = target.spec.unwrap();
    assert_eq!(spec.node_name.as_deref(), Some("edge-1"), "where the Service has its endpoint");
    let security = spec.containers[0].security_context.as_ref().unwrap();
    assert_eq!((security.run_as_non_root, security.allow_privilege_escalation), (Some(true), Some(false)));
    let id = probe.id().to_string();
    std::process::Command::new("kill").args(["-INT", &id]).status().unwrap();
    let output = tokio::task::spawn_blocking(move || probe.wait_with_output()).await.unwrap().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("1 pod in web  the target, on edge-1"), "{stderr}");
    assert!(stderr.contains("interrupted; no helper pod is left"), "{stderr}");
    until("nothing is left", async || {
        let left = (pods(control_plane).await.len(), services(control_plane).await.len());
        if left == (0, 0) { Ok(()) } else { Err(left) }
    })
    .await;
}

#[tokio::test]
async fn a_missing_right_is_named_before_anything_is_created() {
    let (control_plane, _) = plugin::cluster(PROGRAM).await;
    let read = |group: &str, resources: Value| json!({"apiGroups": [group], "resources": resources, "verbs": ["list"]});
    let rules = json!([
        read("", json!(["services", "nodes", "pods"])),
        read("discovery.k8s.io", json!(["endpointslices"])),
        read("sourcepreserve.io", json!(["ingresssourcepreserves"])),
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "get", "delete"]},
        {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
    ]);
    grant(control_plane, ("web", "reader"), &rules).await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kubeconfig");
    control_plane.write_kubeconfig_of("web", "reader", &path).await.unwrap();
    let told = end(command(PROGRAM, &path, &PROBE)).await;
    assert_eq!(told.code, Some(1), "{told:?}");
    let words = "the right to create services in namespace web";
    assert!(told.stderr.contains(words) && told.stderr.contains("--target own"), "{told:?}");
    assert!(!told.stderr.contains("This creates"), "{told:?}");
}
