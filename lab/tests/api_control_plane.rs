//! The control plane on loopback is real: it stores objects, runs admission and controllers, and
//! with kwok simulates nodes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use isp_lab::ControlPlane;
use isp_testkit::until;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, ServiceAccount};
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::json;

async fn namespace(client: &kube::Client, name: &str) {
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
}

#[tokio::test]
async fn a_namespace_gets_its_service_account_from_the_controller_manager() {
    let client = ControlPlane::shared().await.unwrap().client().unwrap();
    namespace(&client, "accounts").await;
    let accounts: Api<ServiceAccount> = Api::namespaced(client, "accounts");
    let account =
        until("the default service account", async || accounts.get_opt("default").await.unwrap()).await;
    assert_eq!(account.metadata.name.as_deref(), Some("default"));
}

#[tokio::test]
async fn kubectl_talks_to_it_and_a_user_without_rights_is_refused() {
    let control_plane = ControlPlane::shared().await.unwrap();
    let version = control_plane.kubectl(&["version", "-o", "json"]).await.unwrap();
    assert!(version.stdout.contains("\"gitVersion\": \"v1.37.0\""), "{version:?}");
    let refused = control_plane.kubectl(&["get", "secrets", "-A", "--as", "nobody"]).await.unwrap();
    assert!(!refused.success && refused.stderr.contains("cannot list resource \"secrets\""), "{refused:?}");
}

#[tokio::test]
async fn a_thousand_simulated_nodes_become_ready_and_run_pods() {
    let control_plane = ControlPlane::shared().await.unwrap();
    control_plane.simulate_nodes().await.unwrap();
    let client = control_plane.client().unwrap();
    let nodes: Api<Node> = Api::all(client.clone());
    for index in 0..1000 {
        let node: Node = serde_json::from_value(json!({
            "metadata": {
                "name": format!("simulated-{index}"),
                "labels": {"simulated": "yes"},
                "annotations": {"kwok.x-k8s.io/node": "fake"},
            },
        }))
        .unwrap();
        nodes.create(&PostParams::default(), &node).await.unwrap();
    }
    let ready = |node: &Node| {
        let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.is_some_and(|list| list.iter().any(|item| item.type_ == "Ready" && item.status == "True"))
    };
    let simulated = ListParams::default().labels("simulated=yes");
    until("1,000 ready nodes", async || {
        let all = nodes.list(&simulated).await.unwrap();
        match all.items.iter().filter(|node| ready(node)).count() {
            1000 => Ok(()),
            count => Err(format!("{count} ready nodes")),
        }
    })
    .await;

    namespace(&client, "simulated").await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "simulated");
    let accounts: Api<ServiceAccount> = Api::namespaced(client, "simulated");
    until("the service account", async || accounts.get_opt("default").await.unwrap()).await;
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "one"},
        "spec": {"nodeName": "simulated-7", "containers": [{"name": "c", "image": "none"}]},
    }))
    .unwrap();
    pods.create(&PostParams::default(), &pod).await.unwrap();
    until("a running pod", async || {
        let phase = pods.get("one").await.unwrap().status.and_then(|status| status.phase);
        if phase.as_deref() == Some("Running") { Ok(()) } else { Err(phase) }
    })
    .await;
}
