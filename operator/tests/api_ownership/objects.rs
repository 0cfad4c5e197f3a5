//! Objects with conflicting claims.

use std::time::Duration;

use isp_testkit::kube_proxy;
use isp_testkit::simulated::Cluster;
use serde_json::json;

use crate::PROGRAM;
use crate::services::make;

#[tokio::test]
async fn the_newer_of_two_that_claim_a_service_waits_and_then_has_it() {
    let cluster = Cluster::start(PROGRAM, &[("edge", json!({"ingress": ""}))]).await;
    let service = make(&cluster, "shared").await;
    let spec = json!({
        "ingressNodes": {"selector": {"matchLabels": {"ingress": ""}}},
        "services": [{"namespace": "shared", "name": "web"}],
    });
    cluster.preserve("older", spec.clone()).await;
    cluster.wait_for("older", "Ready", "True").await;
    // Creation times have a resolution of one second; for equal times the name decides.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    cluster.preserve("newer", spec).await;
    let message = cluster.wait_for("newer", "Conflict", "True").await;
    assert!(message.contains("Service shared/web") && message.contains("older"), "{message}");
    assert_eq!(cluster.state(&service).await["metadata"]["labels"]["sourcepreserve.io/preserve"], "older");
    cluster.delete("older").await;
    cluster.wait_for("newer", "Ready", "True").await;
    assert_eq!(cluster.state(&service).await["metadata"]["labels"]["sourcepreserve.io/preserve"], "newer");
}

#[tokio::test]
async fn the_newer_of_two_that_disagree_on_a_pool_gives_way() {
    let nodes = [("edge", json!({"ingress": ""})), ("work", json!({"kind": "a"}))];
    let cluster = Cluster::start(PROGRAM, &nodes).await;
    cluster.create(&kube_proxy::daemon_set(None), "kubeadm").await;
    cluster.create(&kube_proxy::configuration(), "kubeadm").await;
    let stand_in = cluster.stand_in();
    let spec = |namespace: &str, selector| {
        json!({
            "ingressNodes": {"selector": {"matchLabels": {"ingress": ""}}},
            "services": [{"namespace": namespace, "name": "web"}],
            "nodePools": [{"name": "workers", "selector": selector}],
        })
    };
    make(&cluster, "one").await;
    let other = make(&cluster, "two").await;
    let before = cluster.state(&other).await;
    cluster.preserve("one", spec("one", json!({"matchLabels": {"kind": "a"}}))).await;
    cluster.wait_for("one", "Ready", "True").await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    cluster.preserve("two", spec("two", json!({"matchLabels": {"kind": "b"}}))).await;
    let message = cluster.wait_for("two", "Conflict", "True").await;
    assert!(
        message.contains("spec.nodePools[0]") && message.contains("selector") && message.contains("one"),
        "{message}"
    );
    assert_eq!(cluster.state(&other).await, before);
    cluster.delete("two").await;
    cluster.delete("one").await;
    stand_in.abort();
}
