//! Certificates and CAs are rotated every few seconds while pods are created: no call fails, and no
//! pod is missed.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use isp_testkit::control_plane::SYSTEM;
use isp_testkit::until;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use super::faults::works_again;
use super::harness::{SHOP, Scenario, WEBHOOK};

const SECRET: &str = "sourcepreserve-webhook-ca";
/// Duration in seconds; a soak run uses two minutes.
const SECONDS: &str = "ISP_SOAK_ROTATION";
const PAUSE: Duration = Duration::from_millis(30);

pub(crate) async fn no_pod_is_missed_while_certificates_change(scenario: &Scenario) {
    let seconds = std::env::var(SECONDS).ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(25);
    let arguments = ["run", "--ca-lifetime=18s", "--leaf-lifetime=8s", "--overlap=3s"];
    let patch =
        json!([{"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": arguments}])
            .to_string();
    scenario.lab.kubectl(["-n", SYSTEM, "patch", WEBHOOK, "--type=json", "-p", &patch]).await.unwrap();
    scenario.lab.kubectl(["-n", SYSTEM, "rollout", "status", WEBHOOK, "--timeout=120s"]).await.unwrap();
    // The existing CA lives for a year. Emptying the Secret forces a new one with the short
    // lifetime.
    let emptied = ["-n", SYSTEM, "patch", "secret", SECRET, "--type=merge", "-p", r#"{"data":null}"#];
    scenario.lab.kubectl(emptied).await.unwrap();
    let secrets: Api<Secret> = Api::namespaced(scenario.lab.client(), SYSTEM);
    until("there is another authority", async || secrets.get(SECRET).await.unwrap().data.is_some()).await;
    works_again(scenario).await;

    let failures = failures(scenario).await;
    let pods: Api<Pod> = Api::namespaced(scenario.lab.client(), SHOP);
    let pod =
        json!({"metadata": {"name": "tried"}, "spec": {"containers": [{"name": "app", "image": "none"}]}});
    let pod = serde_json::from_value(pod).unwrap();
    let tried = PostParams { dry_run: true, ..PostParams::default() };
    let (mut created, mut missed, mut authorities) = (0, Vec::new(), BTreeSet::new());
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(seconds) {
        let answer = pods.create(&tried, &pod).await.unwrap();
        created += 1;
        if isp_api::sidecar::Sidecar::of(&answer).is_none_or(|sidecar| sidecar.proxy != "TPROXY") {
            missed.push(began.elapsed());
        }
        if created % 20 == 0 {
            let secret = secrets.get(SECRET).await.unwrap();
            authorities.insert(secret.data.unwrap()["ca.crt"].0.clone());
        }
        tokio::time::sleep(PAUSE).await;
    }
    println!(
        "rotation: {created} pods in {seconds} s, {} authorities, missed at {missed:?}",
        authorities.len()
    );
    assert!(authorities.len() >= 2, "nothing was rotated");
    assert!(missed.is_empty());
    assert_eq!(self::failures(scenario).await, failures, "calls that the API server went on without");
}

/// Failed calls to this webhook, from the API server's metrics.
async fn failures(scenario: &Scenario) -> Vec<String> {
    let metrics = scenario.lab.kubectl(["get", "--raw", "/metrics"]).await.unwrap().stdout;
    let failed = |line: &&str| {
        line.starts_with("apiserver_admission_webhook_fail_open_count")
            && line.contains("pods-0.sourcepreserve.io")
    };
    metrics.lines().filter(failed).map(str::to_owned).collect()
}
