//! What others do to Services and agents of mode Beside. No request may fail.

use isp_api::names::BESIDE_NAME;
use isp_lab::{Place, Protocol};
use isp_testkit::until;
use isp_testkit::web_lab::{CLIENT, EDGE, ELSEWHERE, EXTERNAL, OBJECT, WebLab, addresses};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use crate::LABEL;

async fn label(scenario: &WebLab, value: &str) {
    let set = format!("{LABEL}{value}");
    scenario.lab.kubectl(["-n", "web", "label", "service", "frontend", &set, "--overwrite"]).await.unwrap();
}

async fn proxy_name(scenario: &WebLab) -> Option<String> {
    let services: Api<Service> = Api::namespaced(scenario.lab.client(), "web");
    services.get("frontend").await.unwrap().labels().get(LABEL).cloned()
}

/// Its rules stay in the kernel, and another agent comes.
pub(crate) async fn an_agent_is_lost(scenario: &WebLab) {
    replace_an_agent(scenario, ELSEWHERE[0]).await;
    scenario.wait_until_ready().await;
    addresses::arrive(scenario).await;
}

/// Deletes the pod of a node's agent, and waits until another one is ready.
async fn replace_an_agent(scenario: &WebLab, node: &str) {
    let pods: Api<Pod> = Api::namespaced(scenario.lab.client(), "kube-system");
    let agents = ListParams::default().labels("sourcepreserve.io/agent-mode=beside");
    let on_node = async || {
        let all = pods.list(&agents).await.unwrap().items;
        let here = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(node);
        all.into_iter().find(|pod| here(pod) && pod.metadata.deletion_timestamp.is_none())
    };
    let lost = on_node().await.unwrap();
    scenario.lab.kubectl(["-n", "kube-system", "delete", "pod", &lost.name_any()]).await.unwrap();
    until("another agent is ready", async || {
        on_node().await.is_some_and(|pod| pod.metadata.uid != lost.metadata.uid && is_ready(&pod))
    })
    .await;
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// It is set once more; then the condition names it, and both kube-proxy and the agents serve.
pub(crate) async fn the_label_is_removed(scenario: &WebLab) {
    label(scenario, "-").await;
    until("the label is back", async || proxy_name(scenario).await.is_some()).await;
    scenario.wait_until_ready().await;
    label(scenario, "-").await;
    let message = until("the operator has stopped setting it", async || {
        let conflict = scenario.condition("Conflict").await?;
        (conflict.status == "True").then_some(conflict.message)
    })
    .await;
    assert!(message.contains(LABEL) && message.contains("keeps reverting"), "{message}");
    assert_eq!(proxy_name(scenario).await, None);
    // Pods reach the external IP through the kube-proxy of their own node again. Clients outside do
    // not.
    let answer = scenario.lab.ask(&Place::Client, Protocol::Http, &format!("{EXTERNAL}:80")).await.unwrap();
    assert_eq!(answer.peer(), Some(CLIENT), "{answer:?}");
}

/// It is never overridden.
pub(crate) async fn another_proxy_claims_the_service(scenario: &WebLab) {
    label(scenario, "=cilium").await;
    until("the conflict names the other proxy", async || {
        let conflict = scenario.condition("Conflict").await?;
        (conflict.status == "True" && conflict.message.contains("cilium")).then_some(())
    })
    .await;
    assert_eq!(proxy_name(scenario).await.as_deref(), Some("cilium"));
    addresses::arrive(scenario).await;
    // Without the label, a change of the object lets the operator try again.
    label(scenario, "-").await;
    let patch = r#"{"spec": {"rollout": {"progressDeadlineSeconds": 500}}}"#;
    scenario.lab.kubectl(["patch", "isp", OBJECT, "--type=merge", "-p", patch]).await.unwrap();
    until("the operator has seen the change", async || {
        let object = scenario.objects().get(OBJECT).await.unwrap();
        object.status.is_some_and(|status| status.observed_generation == object.metadata.generation)
    })
    .await;
    scenario.wait_until_ready().await;
    assert_eq!(proxy_name(scenario).await.as_deref(), Some("ingress-source-preserve"));
}

/// The object goes while no operator runs: somebody removed its finalizer. kube-proxies still skip
/// the Service, so the agents go on, until the operator has given it back.
pub(crate) async fn the_finalizer_is_removed(scenario: &WebLab) {
    scenario.end_operator().await;
    scenario.lab.kubectl(["delete", "isp", OBJECT, "--wait=false"]).await.unwrap();
    let patch = r#"{"metadata": {"finalizers": null}}"#;
    scenario.lab.kubectl(["patch", "isp", OBJECT, "--type=merge", "-p", patch]).await.unwrap();
    until("the object is gone", async || scenario.objects().get_opt(OBJECT).await.unwrap().is_none()).await;
    // An agent would stop serving at once.
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    // An agent that starts now finds no object, only the tables of the one before.
    replace_an_agent(scenario, EDGE).await;
    replace_an_agent(scenario, ELSEWHERE[0]).await;
    assert_eq!(proxy_name(scenario).await.as_deref(), Some("ingress-source-preserve"));
    scenario.restart_operator().await;
    let sets: Api<DaemonSet> = Api::namespaced(scenario.lab.client(), "kube-system");
    until("the agents are gone", async || sets.get_opt(BESIDE_NAME).await.unwrap().is_none()).await;
    assert_eq!(proxy_name(scenario).await, None);
}
