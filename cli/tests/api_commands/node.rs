//! What is said about nodes, from their reports.

use isp_lab::docs;
use isp_testkit::control_plane::{apply, kubectl};
use isp_testkit::plugin::{self, command, end, set_status, typed};
use serde_json::json;

use super::{PROGRAM, REPORTS, object};

const MANUAL: &str = "docs/kubectl-isp.md";

#[tokio::test]
async fn the_report_of_mode_beside_is_read_as_well() {
    let ((control_plane, _), _guard) = (plugin::cluster(PROGRAM).await, REPORTS.lock().await);
    let name = "work-2.beside";
    let report = json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourceNode", "metadata": {"name": name},
    });
    apply(control_plane, &report).await;
    // An object of this mode would concern the nodes of other tests.
    let views = json!([{
        "object": "gone", "uid": "gone", "generation": 1, "view": "Full", "received": true, "programmed": true,
        "services": ["web/frontend"],
    }]);
    let status = json!({"pool": "", "mode": "Beside", "active": true, "views": views});
    set_status(control_plane, "isn", name, &status).await;
    let told = end(command(PROGRAM, &control_plane.kubeconfig(), &["explain-node", "work-2"])).await;
    assert_eq!(told.stderr, "");
    assert!(
        told.stdout.starts_with("work-2: the agent serves 1 preserved Service beside "),
        "{}",
        told.stdout
    );
    assert!(
        told.stdout.contains("  agent      mode Beside: no pod on this node runs it\n"),
        "{}",
        told.stdout
    );
    kubectl(control_plane, &["delete", "isn", name]).await;
}

#[tokio::test]
async fn a_node_is_explained() {
    let (control_plane, _) = plugin::cluster(PROGRAM).await;
    let config = control_plane.kubeconfig();
    apply(control_plane, &object("explained")).await;
    let [explain] = docs::commands(MANUAL, "a_node_is_explained").unwrap();
    let told = end(command(PROGRAM, &config, &typed(&explain))).await;
    assert_eq!(told.code, Some(2), "the node has no agent: {told:?}");
    let block = "\
  explained  ClusterOnly: the node does not see the external addresses of the Services
             non-ingress node: ingressNodes.selector does not match (node-role.kubernetes.io/ingress=)
             in pool default: its selector matches (every node)
             acknowledged: nothing, no agent reports
";
    assert!(told.stdout.starts_with("work-1: served by the cluster's kube-proxy\n"), "{}", told.stdout);
    assert!(told.stdout.contains(block), "{}", told.stdout);
    let told = end(command(PROGRAM, &config, &["explain-node", "edge-1"])).await;
    assert_eq!(told.code, Some(0), "an ingress node needs no agent: {told:?}");
    assert!(
        told.stdout.contains("  explained  Full: the node sees all addresses of the Services\n"),
        "{}",
        told.stdout
    );
    let told = end(command(PROGRAM, &config, &["explain-node", "work-9"])).await;
    assert_eq!(told.code, Some(1));
    assert_eq!(told.stderr, "error: there is no node \"work-9\"; `kubectl get nodes` lists them\n");
}
