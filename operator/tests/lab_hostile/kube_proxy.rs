//! Another manager brings the cluster's kube-proxy back to nodes with an agent.

use std::time::Duration;

use isp_lab::ProxyMode;
use isp_testkit::until;
use isp_testkit::web_lab::{OBJECT, WebLab, addresses};
use k8s_openapi::api::apps::v1::DaemonSet;
use kube::Api;
use serde_json::json;

use crate::A_WHILE;

fn sets(scenario: &WebLab) -> Api<DaemonSet> {
    Api::namespaced(scenario.lab.client(), "kube-system")
}

async fn generation(scenario: &WebLab) -> i64 {
    sets(scenario).get("kube-proxy").await.unwrap().metadata.generation.unwrap()
}

/// Restores the original template by a plain update, as a cluster upgrade does.
async fn remove_affinity(scenario: &WebLab) {
    let patch = json!([
        {"op": "remove", "path": "/spec/template/spec/affinity"},
        // A removal alone leaves no managedFields entry.
        {"op": "add", "path": "/metadata/labels/applied", "value": generation(scenario).await.to_string()},
    ])
    .to_string();
    let arguments = [
        "-n",
        "kube-system",
        "patch",
        "daemonset",
        "kube-proxy",
        "--type=json",
        "-p",
        &patch,
        "--field-manager=addon-manager",
    ];
    scenario.lab.kubectl(arguments).await.unwrap();
}

async fn is_kept_off(scenario: &WebLab) -> bool {
    let set = sets(scenario).get("kube-proxy").await.unwrap();
    json!(set.spec.template.spec).to_string().contains("sourcepreserve.io/agent-pool")
}

/// The first time the operator corrects it: kube-proxy leaves, and its rules are gone before the
/// object is ready again.
pub(crate) async fn comes_back_once(scenario: &WebLab) {
    remove_affinity(scenario).await;
    until("kube-proxy is kept off again", async || is_kept_off(scenario).await).await;
    // Rules written by kube-proxy's pods meanwhile do not count as acknowledged.
    scenario.wait_until_ready().await;
    addresses::arrive(scenario).await;
}

/// The second time the operator reports a conflict instead: each node has one kube-proxy, and the
/// DaemonSet stays as it is.
pub(crate) async fn is_not_fought(scenario: &WebLab) {
    remove_affinity(scenario).await;
    let message = scenario.wait_for_condition("Conflict", "True", "KubeProxyNotKeptOff").await;
    assert!(message.contains("addon-manager"), "{message}");
    let before = generation(scenario).await;
    let agents = [
        "-n",
        "kube-system",
        "wait",
        "--for=delete",
        "pod",
        "-l",
        "sourcepreserve.io/agent-pool=default",
        "--timeout=120s",
    ];
    scenario.lab.kubectl(agents).await.unwrap();
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(generation(scenario).await, before, "the operator fights");
    assert!(!is_kept_off(scenario).await);
    // A change of the object makes the operator try again.
    let patch = json!({"spec": {"rollout": {"progressDeadlineSeconds": 120}}}).to_string();
    scenario.lab.kubectl(["patch", "isp", OBJECT, "--type=merge", "-p", &patch]).await.unwrap();
    scenario.wait_until_ready().await;
    addresses::arrive(scenario).await;
}

/// Whether this request was delayed by kube-proxy in iptables mode. When it first writes a Service
/// with `Local` on a node without an endpoint, it commits the filter table, which drops packets to
/// the external IP, before the nat table, which redirects those of pods. A pod's packet in between
/// is lost and resent after a second. Here the cluster's own kube-proxy does this when another
/// manager brings it back.
pub(crate) fn drops_one(mode: ProxyMode, client: &str, after: Duration) -> bool {
    let from_a_pod = client.starts_with("pod on") && client.ends_with("to the external address");
    mode == ProxyMode::Iptables && from_a_pod && after < Duration::from_millis(1500)
}
