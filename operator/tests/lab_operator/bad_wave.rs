//! An agent that does not start: the wave is rolled back or paused, and no Service is changed.

use std::path::Path;
use std::time::{Duration, Instant};

use isp_api::names::condition;
use isp_lab::Place;
use isp_testkit::snapshot::Snapshot;
use isp_testkit::traffic::start_echo;
use isp_testkit::until;
use isp_testkit::web_lab::{
    AGENT_IMAGE, ELSEWHERE, OBJECT, SERVICE, WebLab, has_agent_label, operator, sample,
};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use nix::sys::signal::Signal;
use serde_json::json;

/// The minimum that the API allows.
const DEADLINE: Duration = Duration::from_secs(30);
/// Tolerance for a busy machine.
const SLACK: Duration = Duration::from_mins(1);
/// The first node of each wave.
const FIRST: &str = ELSEWHERE[0];

/// The port on which an agent serves kube-proxy.
const AGENT_PORT: &str = "10260";

/// An image in a registry that refuses connections, and an agent whose port is in use; with the
/// expected reasons. Only the second image can be pulled, so only there a node is handed over.
const CASES: [(&str, &str, &[&str]); 2] = [
    ("RollBack", "127.0.0.1:1/agent:1", &["ErrImagePull", "ImagePullBackOff"]),
    ("Pause", AGENT_IMAGE, &["CrashLoopBackOff", "ended with", "is not ready"]),
];

pub(crate) async fn is_rolled_back_or_paused(scenario: &WebLab, kubeconfig: &Path, before: &Snapshot) {
    // Nothing happens before an operator runs.
    scenario.lab.kubectl(["apply", "-f", &sample()]).await.unwrap();
    let arguments = ["serve", "--address=127.0.0.1", "--http", AGENT_PORT, "--tcp=0", "--udp=0"];
    let place = Place::Node(FIRST.to_owned());
    let taken = start_echo(&scenario.lab, &place, &arguments, &scenario.file("port.taken")).await;
    for (policy, image, reasons) in CASES {
        let rollout = json!({"progressDeadlineSeconds": DEADLINE.as_secs(), "onFailure": policy});
        let patch = json!({"spec": {"rollout": rollout}}).to_string();
        scenario.lab.kubectl(["patch", "isp", OBJECT, "--type=merge", "-p", &patch]).await.unwrap();
        let began = Instant::now();
        let mut operator =
            operator::run(scenario, kubeconfig, image, &format!("{policy}-{}.log", image.len()));
        let message = wave_that_fails(scenario, reasons).await;
        println!("{policy} of {image} after {:.1} s: {message}", began.elapsed().as_secs_f64());
        assert!(began.elapsed() < DEADLINE + SLACK, "after {:?}", began.elapsed());
        for part in ["pool default", &format!("node {FIRST}")] {
            assert!(message.contains(part), "{part} is not in {message:?}");
        }
        if image == AGENT_IMAGE {
            assert!(has_agent_label(&scenario.lab, FIRST).await, "it does not stay where it is");
        } else {
            assert!(!has_agent_label(&scenario.lab, FIRST).await, "a node went over without its images");
            assert!(has_kube_proxy(scenario, FIRST).await, "the node has lost its kube-proxy");
        }
        assert!(!has_agent_label(&scenario.lab, ELSEWHERE[1]).await, "another wave began");
        assert!(before.has_unchanged(&scenario.lab.client(), SERVICE).await, "the Service was touched");
        operator.signal(Signal::SIGTERM);
        assert!(operator.end().await.success(), "{}", operator.complained());
    }
    drop(taken);
}

/// Waits until the object reports a failed wave for one of these reasons, and returns the message.
async fn wave_that_fails(scenario: &WebLab, reasons: &[&str]) -> String {
    let found = until("the wave fails", async || {
        let agents = scenario.condition(condition::AGENTS_READY).await;
        let named = |message: &str| reasons.iter().any(|reason| message.contains(reason));
        match agents {
            Some(agents) if agents.reason == "WaveFailed" && named(&agents.message) => Ok(agents),
            other => Err(other),
        }
    })
    .await;
    assert_eq!(found.status, "False");
    found.message
}

async fn has_kube_proxy(scenario: &WebLab, node: &str) -> bool {
    let pods: Api<Pod> = Api::namespaced(scenario.lab.client(), "kube-system");
    let here = ListParams::default().labels("k8s-app=kube-proxy").fields(&format!("spec.nodeName={node}"));
    let pods = pods.list(&here).await.unwrap().items;
    pods.iter().any(|pod| {
        let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    })
}
