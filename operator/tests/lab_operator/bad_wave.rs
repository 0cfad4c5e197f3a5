//! An agent that does not start: the wave is rolled back or paused, and no Service is touched.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use isp_api::conditions::find;
use isp_api::names::condition;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Api;
use kube::api::ListParams;
use nix::sys::signal::Signal;
use serde_json::json;

use super::harness::{ELSEWHERE, OBJECT, Scenario, eventually, sample};
use super::operator;
use super::snapshot::Snapshot;

/// The shortest that can be asked for.
const DEADLINE: Duration = Duration::from_secs(30);
/// What it may take on a busy machine to notice, write and read.
const SLACK: Duration = Duration::from_secs(25);

pub(crate) async fn is_rolled_back_or_paused(scenario: &Scenario, kubeconfig: &PathBuf, before: &Snapshot) {
    // Nothing moves before its operator is there.
    scenario.lab.kubectl(["apply", "-f", &sample()]).await.unwrap();
    for (policy, image) in [("RollBack", "lab.local/no-such-agent:1"), ("Pause", "lab.local/no-such-agent:2")]
    {
        let rollout = json!({"spec": {"rollout": {
            "progressDeadlineSeconds": DEADLINE.as_secs(), "onFailure": policy, "maxUnavailable": 1,
        }}});
        let patch = rollout.to_string();
        scenario.lab.kubectl(["patch", "isp", OBJECT, "--type=merge", "-p", &patch]).await.unwrap();
        let began = Instant::now();
        let mut operator = operator::run(scenario, kubeconfig, image, &format!("{policy}.log"));
        let failed = wave_that_fails(scenario, image).await;
        println!("{policy} after {:.1} s: {}", began.elapsed().as_secs_f64(), failed.message);
        assert!(began.elapsed() < DEADLINE + SLACK, "after {:?}", began.elapsed());
        let node = ELSEWHERE[0];
        for part in ["pool default", &format!("node {node}"), "Image", image] {
            assert!(failed.message.contains(part), "{part} is not in {:?}", failed.message);
        }
        if policy == "RollBack" {
            eventually("the node has its kube-proxy back", async || {
                !has_agent_label(scenario, node).await && has_kube_proxy(scenario, node).await
            })
            .await;
        } else {
            assert!(has_agent_label(scenario, node).await, "it stays where it is");
        }
        assert!(!has_agent_label(scenario, ELSEWHERE[1]).await, "no other wave begins");
        assert!(before.has_the_same_service(&scenario.lab).await, "the Service was touched");
        operator.signal(Signal::SIGTERM);
        assert!(operator.end().await.success(), "{}", operator.complained());
    }
}

/// Waits until the object says that a wave with this image has failed.
async fn wave_that_fails(scenario: &Scenario, image: &str) -> Condition {
    let mut found = None;
    eventually("the wave fails", async || {
        let status = scenario.objects().get(OBJECT).await.unwrap().status.unwrap_or_default();
        found = find(&status.conditions, condition::AGENTS_READY)
            .filter(|condition| condition.reason == "WaveFailed" && condition.message.contains(image))
            .cloned();
        found.is_some()
    })
    .await;
    let found = found.unwrap();
    assert_eq!(found.status, "False");
    found
}

async fn has_agent_label(scenario: &Scenario, node: &str) -> bool {
    let node = Api::<Node>::all(scenario.lab.client()).get(node).await.unwrap();
    node.metadata.labels.is_some_and(|labels| labels.contains_key("sourcepreserve.io/agent-pool"))
}

async fn has_kube_proxy(scenario: &Scenario, node: &str) -> bool {
    let pods: Api<Pod> = Api::namespaced(scenario.lab.client(), "kube-system");
    let here = ListParams::default().labels("k8s-app=kube-proxy").fields(&format!("spec.nodeName={node}"));
    let pods = pods.list(&here).await.unwrap().items;
    pods.iter().any(|pod| {
        let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    })
}
