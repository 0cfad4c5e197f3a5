//! Uninstalling while an object exists: agents keep running for longer than a watch lasts, and a
//! lost agent is replaced.

use std::time::{Duration, Instant};

use isp_lab::Protocol;
use isp_testkit::control_plane::SYSTEM;
use isp_testkit::web_lab::{ELSEWHERE, WebLab, addresses, pod_on, sample};
use isp_testkit::{repository, until};
use k8s_openapi::api::core::v1::{Namespace, Pod, Service, ServiceAccount};
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

use super::PROGRAM;

/// Longer than the agents' watches last, so that each one has been restarted with the
/// ServiceAccount's permissions.
const LONGER_THAN_A_WATCH: Duration = Duration::from_secs(75);

#[tokio::test]
async fn agents_outlive_an_uninstallation_while_an_object_is_alive() {
    let scenario = WebLab::up("uninstall", PROGRAM).await;
    let lab = &scenario.lab;
    scenario.install().await;
    let before = scenario.snapshot().await;
    lab.kubectl(["apply", "-f", &sample()]).await.unwrap();
    scenario.wait_until_ready().await;
    addresses::arrive(&scenario).await;
    let accounts: Api<ServiceAccount> = Api::namespaced(lab.client(), "kube-system");
    let uid = accounts.get("proxy-agent").await.unwrap().metadata.uid;

    lab.kubectl(["delete", "-k", &repository::path("manifests/base"), "--wait=false"]).await.unwrap();
    let namespaces: Api<Namespace> = Api::all(lab.client());
    until("the operator is gone", async || namespaces.get_opt(SYSTEM).await.unwrap().is_none()).await;
    tokio::time::sleep(LONGER_THAN_A_WATCH).await;
    assert_eq!(accounts.get("proxy-agent").await.unwrap().metadata.uid, uid);
    addresses::arrive(&scenario).await;

    // The agent of the first node is lost; the one of the second node has run all the time.
    let lost = agent_on(&scenario, ELSEWHERE[0]).await.unwrap();
    let name = lost.metadata.name.as_deref().unwrap();
    lab.kubectl(["-n", "kube-system", "delete", "pod", name, "--wait=false"]).await.unwrap();
    until("another agent is ready in its place", async || {
        let agent = agent_on(&scenario, ELSEWHERE[0]).await;
        agent.is_some_and(|agent| agent.metadata.uid != lost.metadata.uid && is_ready(&agent))
    })
    .await;
    expect_news(&scenario).await;
    addresses::arrive(&scenario).await;

    // The next operator finds everything unchanged, and reverts it on request.
    let began = Instant::now();
    scenario.install().await;
    scenario.wait_until_ready().await;
    addresses::arrive(&scenario).await;
    assert_eq!(accounts.get("proxy-agent").await.unwrap().metadata.uid, uid);
    lab.kubectl(["delete", "-f", &sample(), "--timeout=120s"]).await.unwrap();
    println!("gone after {:.1} s", began.elapsed().as_secs_f64());
    assert!(accounts.get_opt("proxy-agent").await.unwrap().is_none(), "it goes before the object does");
    lab.kubectl(["-n", "web", "delete", "service", "late"]).await.unwrap();
    scenario.expect_restored(&before).await;
    addresses::are_lost(&scenario).await;
}

/// A new Service reaches the kube-proxy behind each agent.
async fn expect_news(scenario: &WebLab) {
    let services: Api<Service> = Api::namespaced(scenario.lab.client(), "web");
    let like = services.get("frontend").await.unwrap().spec.unwrap();
    let port = json!({"port": 80, "targetPort": like.ports.unwrap()[0].target_port});
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "late", "namespace": "web"},
        "spec": {"selector": like.selector, "ports": [port]},
    });
    scenario.lab.apply(&service.to_string()).await.unwrap();
    let address = services.get("late").await.unwrap().spec.unwrap().cluster_ip.unwrap();
    for node in ELSEWHERE {
        until(&format!("{node} has heard of it"), async || {
            let target = format!("{address}:80");
            let answer = scenario.lab.ask(&pod_on(node), Protocol::Http, &target).await;
            answer.is_ok_and(|answer| answer.peer().is_some())
        })
        .await;
    }
}

async fn agent_on(scenario: &WebLab, node: &str) -> Option<Pod> {
    let pods: Api<Pod> = Api::namespaced(scenario.lab.client(), "kube-system");
    let agents = ListParams::default().labels("app.kubernetes.io/name=proxy-agent");
    let here = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(node);
    let mut agents = pods.list(&agents).await.unwrap().items.into_iter().filter(here);
    agents.find(|pod| pod.metadata.deletion_timestamp.is_none())
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
