//! Upgrades of the agents that cannot start.

use std::path::Path;

use isp_api::names::AGENT_REVISION_LABEL;
use isp_testkit::until;
use isp_testkit::web_lab::{ELSEWHERE, OBJECT, WebLab, operator};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::PostParams;
use nix::sys::signal::Signal;
use serde_json::json;

async fn revision(scenario: &WebLab, node: &str) -> Option<String> {
    let node = Api::<Node>::all(scenario.lab.client()).get(node).await.unwrap();
    node.metadata.labels.and_then(|labels| labels.get(AGENT_REVISION_LABEL).cloned())
}

/// The image is in a registry that refuses connections. No node is changed, and the object reports
/// it.
pub(crate) async fn cannot_be_pulled(scenario: &WebLab, kubeconfig: &Path) {
    let patch = json!({"spec": {"rollout": {"progressDeadlineSeconds": 30}}}).to_string();
    scenario.lab.kubectl(["patch", "isp", OBJECT, "--type=merge", "-p", &patch]).await.unwrap();
    let before = revision(scenario, ELSEWHERE[0]).await;
    assert!(before.is_some());
    let mut operator = operator::run(scenario, kubeconfig, "127.0.0.1:1/agent:2", "upgrade.log");
    let message = scenario.wait_for_condition("AgentsReady", "False", "WaveFailed").await;
    assert!(message.contains("ErrImagePull") || message.contains("ImagePullBackOff"), "{message}");
    assert_eq!(scenario.condition("Ready").await.unwrap().status, "False");
    for node in ELSEWHERE {
        assert_eq!(revision(scenario, node).await, before, "{node} was taken");
    }
    operator.signal(Signal::SIGTERM);
    assert!(operator.end().await.success(), "{}", operator.complained());
}

/// The cluster's kube-proxy gets an unknown argument, and the agents copy it. The first node is
/// rolled back to the working revision, and no other node is changed.
pub(crate) async fn does_not_start(scenario: &WebLab) {
    let before = revision(scenario, ELSEWHERE[0]).await;
    assert!(before.is_some());
    patch_kube_proxy(scenario, |arguments| arguments.push("--no-such-argument".to_owned())).await;
    let mut taken = false;
    until("a node goes back to the revision before", async || {
        let now = revision(scenario, ELSEWHERE[0]).await;
        taken |= now != before;
        assert_eq!(revision(scenario, ELSEWHERE[1]).await, before, "another node was taken");
        taken && now == before
    })
    .await;
    let message = scenario.wait_for_condition("AgentsReady", "False", "WaveFailed").await;
    assert!(message.contains(ELSEWHERE[0]), "{message}");
    patch_kube_proxy(scenario, |arguments| drop(arguments.pop())).await;
    scenario.wait_until_ready().await;
    assert_eq!(revision(scenario, ELSEWHERE[0]).await, before);
}

async fn patch_kube_proxy(scenario: &WebLab, change: impl Fn(&mut Vec<String>)) {
    let sets: Api<DaemonSet> = Api::namespaced(scenario.lab.client(), "kube-system");
    let mut set = sets.get("kube-proxy").await.unwrap();
    let container = &mut set.spec.template.spec.as_mut().unwrap().containers[0];
    change(container.args.as_mut().or(container.command.as_mut()).unwrap());
    sets.replace("kube-proxy", &PostParams::default(), &set).await.unwrap();
}
