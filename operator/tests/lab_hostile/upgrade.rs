//! An upgrade of the agents that cannot start.

use std::path::Path;

use isp_api::names::AGENT_REVISION_LABEL;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use nix::sys::signal::Signal;
use serde_json::json;

use crate::harness::{ELSEWHERE, OBJECT, Scenario};
use crate::{operator, said};

async fn revision(scenario: &Scenario, node: &str) -> Option<String> {
    let node = Api::<Node>::all(scenario.lab.client()).get(node).await.unwrap();
    node.metadata.labels.and_then(|labels| labels.get(AGENT_REVISION_LABEL).cloned())
}

/// The image is in a registry that refuses connections. No node is taken, and the object says so.
pub(crate) async fn cannot_be_pulled(scenario: &Scenario, kubeconfig: &Path) {
    let patch = json!({"spec": {"rollout": {"progressDeadlineSeconds": 30}}}).to_string();
    scenario.lab.kubectl(["patch", "isp", OBJECT, "--type=merge", "-p", &patch]).await.unwrap();
    let before = revision(scenario, ELSEWHERE[0]).await;
    assert!(before.is_some());
    let mut operator = operator::run(scenario, kubeconfig, "127.0.0.1:1/agent:2", "upgrade.log");
    let message = said::wait_for(scenario, "AgentsReady", "False", "WaveFailed").await;
    assert!(message.contains("ErrImagePull") || message.contains("ImagePullBackOff"), "{message}");
    assert_eq!(said::condition(scenario, "Ready").await.unwrap().status, "False");
    for node in ELSEWHERE {
        assert_eq!(revision(scenario, node).await, before, "{node} was taken");
    }
    operator.signal(Signal::SIGTERM);
    assert!(operator.end().await.success(), "{}", operator.complained());
}
