//! The cluster's kube-proxy, with and without its own node affinity.

use isp_testkit::kube_proxy::{configuration, daemon_set};
use isp_testkit::simulated::Cluster;
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::services::make;

fn terms() -> Value {
    json!([
        {"matchExpressions": [{"key": "kind", "operator": "Exists"}]},
        {"matchExpressions": [{"key": "never", "operator": "Exists"}]},
    ])
}

async fn cluster() -> Cluster {
    let nodes = [
        ("edge", json!({"ingress": "", "kind": "edge"})),
        ("work-1", json!({"kind": "work"})),
        ("work-2", json!({"kind": "work"})),
    ];
    let cluster = Cluster::start(PROGRAM, &nodes).await;
    cluster.create(&configuration(), "kubeadm").await;
    cluster
}

fn spec() -> Value {
    json!({
        "ingressNodes": {"selector": {"matchLabels": {"ingress": ""}}},
        "services": [{"namespace": "web", "name": "web"}],
    })
}

fn requirements(state: &Value) -> Vec<String> {
    let required = &state["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    required["nodeSelectorTerms"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|term| term["matchExpressions"].to_string())
        .collect()
}

async fn on_and_off(set: &Value, cluster: &Cluster) -> (Value, Value) {
    on_meanwhile_and_off(set, cluster, json!({})).await
}

/// Applies and deletes an object, with this patch of the DaemonSet in between.
async fn on_meanwhile_and_off(set: &Value, cluster: &Cluster, patch: Value) -> (Value, Value) {
    make(cluster, "web").await;
    let before = cluster.state(set).await;
    let stand_in = cluster.stand_in();
    cluster.preserve("web", spec()).await;
    cluster.wait_for("web", "Ready", "True").await;
    let kept_off = requirements(&cluster.state(set).await);
    assert!(!kept_off.is_empty());
    for term in kept_off {
        assert!(term.contains("sourcepreserve.io/agent-pool") && term.contains("DoesNotExist"), "{term}");
    }
    cluster.merge(set, "editor", patch).await;
    cluster.delete("web").await;
    stand_in.abort();
    (before, cluster.state(set).await)
}

#[tokio::test]
async fn without_an_affinity_one_comes_and_goes() {
    let cluster = cluster().await;
    let set = daemon_set(None);
    cluster.kubectl_apply(&set).await;
    let (before, after) = on_and_off(&set, &cluster).await;
    assert_eq!(after, before);
}

#[tokio::test]
async fn terms_that_nobody_declared_are_extended_and_returned_to_their_owner() {
    let cluster = cluster().await;
    let set = daemon_set(Some(&terms()));
    cluster.create(&set, "kubeadm").await;
    let (mut before, mut after) = on_and_off(&set, &cluster).await;
    assert_eq!(after["spec"], before["spec"]);
    // The API server lists the owner of a parent field separately only where the parent was
    // created.
    for state in [&mut before, &mut after] {
        let managed = state["metadata"]["managedFields"].take().to_string();
        assert!(managed.contains("kubeadm") && !managed.contains("sourcepreserve-operator"), "{managed}");
        assert!(managed.contains("f:requiredDuringSchedulingIgnoredDuringExecution"), "{managed}");
    }
    assert_eq!(after, before);
}

#[tokio::test]
async fn declared_terms_are_extended_and_come_back() {
    let cluster = cluster().await;
    let set = daemon_set(Some(&terms()));
    cluster.kubectl_apply(&set).await;
    let (before, after) = on_and_off(&set, &cluster).await;
    assert_eq!(after["spec"], before["spec"]);
    // Their owner can apply them again without a conflict.
    cluster.kubectl_apply(&set).await;
    assert_eq!(cluster.state(&set).await["spec"], before["spec"]);
}

/// With empty managedFields, nothing shows which fields the operator owns.
#[tokio::test]
async fn one_whose_managed_fields_were_emptied_is_put_back_all_the_same() {
    let emptied = json!({"metadata": {"managedFields": [{}]}});
    for terms in [None, Some(terms())] {
        let cluster = cluster().await;
        let set = daemon_set(terms.as_ref());
        cluster.create(&set, "kubeadm").await;
        let (before, after) = on_meanwhile_and_off(&set, &cluster, emptied.clone()).await;
        assert_eq!(requirements(&after), requirements(&before));
        assert_eq!(after["metadata"]["annotations"], before["metadata"]["annotations"]);
    }
}
