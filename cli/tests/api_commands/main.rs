//! Every command against a real API server: what it reads, what it says, and what it ends with.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod node;
mod plan;
mod rights;
mod status;

use std::path::PathBuf;
use std::process::Stdio;

use isp_lab::ControlPlane;
use isp_testkit::accounts::grant;
use isp_testkit::control_plane::{SYSTEM, apply};
use isp_testkit::plugin::{self, Ended, SPEC, command, ended};
use serde_json::{Value, json};
use tokio::sync::Mutex;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_kubectl-isp");

/// Held by tests of plans, and by a test that writes a report of a node, which every plan would
/// have to delete.
static REPORTS: Mutex<()> = Mutex::const_new(());

#[tokio::test]
async fn without_the_definitions_the_way_to_install_them_is_told() {
    let (_, bare) = plugin::cluster(PROGRAM).await;
    let Ended { code, stdout, stderr } = bare;
    assert_eq!((*code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("kubectl apply --server-side -k manifests/overlays/default"), "{stderr}");
}

#[tokio::test]
async fn a_reader_that_goes_away_is_no_trouble() {
    let (control_plane, _) = plugin::cluster(PROGRAM).await;
    for arguments in
        [&["status", "-o", "json"][..], &["explain-node", "work-1"], &["completion", "bash"], &["--help"]]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = command(PROGRAM, &control_plane.kubeconfig(), arguments);
        let child = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let told = ended(child.wait_with_output().unwrap());
        assert_eq!(told.stderr, "", "{arguments:?}");
        assert!(matches!(told.code, Some(0 | 2)), "{arguments:?}: {told:?}");
    }
}

fn object(name: &str) -> Value {
    let spec: Value = serde_yaml::from_str(SPEC).unwrap();
    json!({
        "apiVersion": "sourcepreserve.io/v1alpha1",
        "kind": "IngressSourcePreserve",
        // Held already, so that a plan has nothing to do for it.
        "metadata": {"name": name, "finalizers": ["sourcepreserve.io/restore"]},
        "spec": spec,
    })
}

fn condition(type_: &str, status: &str, message: &str) -> Value {
    json!({
        "type": type_, "status": status, "reason": "Because", "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

fn ready(services: &Value) -> Value {
    json!({
        "observedGeneration": 1, "phase": "Ready", "services": services,
        "conditions": [condition("Ready", "True", "all is well"), condition("Checked", "True", "")],
        "nodePools": [{"name": "default", "nodes": 2, "handedOver": 2, "ready": 2, "failed": 0}],
    })
}

/// A kubeconfig of an account that may list objects and reports, and nothing else. The audit log
/// has the requests of accounts in this namespace.
async fn reader_of_objects(
    control_plane: &ControlPlane,
    name: &str,
    directory: &tempfile::TempDir,
) -> PathBuf {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": SYSTEM}});
    apply(control_plane, &account).await;
    let resources = ["ingresssourcepreserves", "ingresssourcenodes"];
    let rules = json!([{"apiGroups": ["sourcepreserve.io"], "resources": resources, "verbs": ["list"]}]);
    grant(control_plane, (SYSTEM, name), &rules).await;
    kubeconfig_of(control_plane, SYSTEM, name, directory).await
}

/// A kubeconfig of this account.
async fn kubeconfig_of(
    control_plane: &ControlPlane,
    namespace: &str,
    name: &str,
    directory: &tempfile::TempDir,
) -> PathBuf {
    let path = directory.path().join("kubeconfig");
    control_plane.write_kubeconfig_of(namespace, name, &path).await.unwrap();
    path
}
