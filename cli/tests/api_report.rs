//! `report` on a real API server: now, after a file is applied, and the Events.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use isp_testkit::control_plane::{apply, kubectl};
use isp_testkit::plugin::{self, SPEC, command, end};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_kubectl-isp");
const FILE: &str =
    "apiVersion: sourcepreserve.io/v1alpha1\nkind: IngressSourcePreserve\nmetadata: {name: web}\n";
const ADDRESS: &str = r#"{"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.10"}]}}}"#;

/// The outcomes of a path in each stage.
fn outcomes(path: &Value) -> Vec<&str> {
    let journeys = path["journeys"].as_array().unwrap();
    journeys.iter().map(|journey| journey["outcome"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_page_compares_now_with_the_file_applied_and_tells_the_events() {
    let (control_plane, _) = plugin::cluster(PROGRAM).await;
    let patch = ["patch", "service", "-n", "web", "frontend", "--subresource=status", "-p", ADDRESS];
    kubectl(control_plane, &patch).await;
    for (node, address) in [("edge-1", "10.90.0.11"), ("work-1", "10.90.0.12"), ("work-2", "10.90.0.13")] {
        let status =
            json!({"status": {"addresses": [{"type": "InternalIP", "address": address}]}}).to_string();
        kubectl(control_plane, &["patch", "node", node, "--subresource=status", "-p", &status]).await;
    }
    // The endpoint is an address of its pods.
    let pods = r#"{"spec": {"podCIDR": "10.244.1.0/24", "podCIDRs": ["10.244.1.0/24"]}}"#;
    kubectl(control_plane, &["patch", "node", "edge-1", "-p", pods]).await;
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "web.1", "namespace": "default"},
        "involvedObject": {"kind": "IngressSourcePreserve", "name": "web"},
        "type": "Warning", "reason": "AgentFailed", "message": "<b>work-1</b> has no agent",
        "lastTimestamp": "2026-01-31T09:10:02Z", "count": 3,
    });
    apply(control_plane, &event).await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("web.yaml");
    std::fs::write(&file, format!("{FILE}spec: {}\n", SPEC.replace("absent", "frontend"))).unwrap();

    let arguments = ["report", "-f", file.to_str().unwrap(), "--service", "web/frontend", "-o", "-"];
    let told = end(command(PROGRAM, &control_plane.kubeconfig(), &arguments)).await;
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""), "{told:?}");
    let data = told.stdout.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["stages"][0]["label"], "Now");
    assert_eq!(data["stages"][1]["label"], "With web.yaml");

    let paths = data["paths"].as_array().unwrap();
    let external = |at: &str| {
        let label = format!("External 192.0.2.10:80 at {at}");
        let found =
            paths.iter().find(|path| path["to"]["label"] == label && path["from"]["kind"] == "outside");
        outcomes(found.unwrap_or_else(|| panic!("no path to {label}: {paths:#?}")))
    };
    assert_eq!(external("edge-1"), ["lost", "preserved"], "{paths:#?}");
    assert_eq!(external("2 nodes of pool workers"), ["lost", "dropped"], "{paths:#?}");
    assert!(told.stdout.contains("<strong>AgentFailed</strong>"));
    assert!(told.stdout.contains("&lt;b&gt;work-1&lt;/b&gt; has no agent (3 times)"));
}
