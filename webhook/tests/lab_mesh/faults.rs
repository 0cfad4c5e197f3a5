//! A webhook that is down, does not answer, is not trusted, or is killed: every pod is created
//! anyway, and the status counts the missed ones.

use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use isp_lab::Place;
use isp_testkit::control_plane::SYSTEM;
use isp_testkit::sidecars::Counts;
use isp_testkit::until;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::json;

use super::harness::{SHOP, Scenario, WEBHOOK};

/// The number of pods per case.
const PODS: usize = 125;
const AT_ONCE: usize = 25;

pub(crate) async fn no_pod_is_refused_and_those_that_were_missed_are_counted(scenario: &Scenario) {
    let began = Instant::now();
    scale(scenario, 0).await;
    let missed = make_and_count(scenario, "down").await;
    assert_eq!(missed, PODS, "nobody is there");
    scale(scenario, 2).await;

    let ids = processes(scenario).await;
    signal(scenario, "-STOP", &ids).await;
    let missed = make_and_count(scenario, "slow").await;
    assert_eq!(missed, PODS, "nobody answers");
    signal(scenario, "-CONT", &ids).await;

    distrust(scenario).await;

    kill_meanwhile(scenario).await;
    println!("{} pods in {:.0} s", 4 * PODS, began.elapsed().as_secs_f64());
    clear(scenario).await;
}

/// Creates pods that no node accepts, so that they stay as admitted. Returns how many lack the
/// mode.
async fn make(scenario: &Scenario, name: &str) -> usize {
    let pods: Api<Pod> = Api::namespaced(scenario.lab.client(), SHOP);
    let one = async |number: usize| {
        let pod = json!({
            "metadata": {"name": format!("{name}-{number}"), "labels": {"fault": name}},
            "spec": {"nodeSelector": {"no-node": "has-this"}, "containers": [{"name": "app", "image": "none"}]},
        });
        pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap()
    };
    let created: Vec<Pod> = stream::iter(0..PODS).map(one).buffer_unordered(AT_ONCE).collect().await;
    let transparent =
        created.iter().filter(|pod| isp_api::sidecar::Sidecar::of(pod).unwrap().proxy == "TPROXY").count();
    let missed = PODS - transparent;
    println!("{name}: {PODS} pods created, {missed} missed");
    missed
}

async fn make_and_count(scenario: &Scenario, name: &str) -> usize {
    let missed = make(scenario, name).await;
    expect_audited(scenario).await;
    missed
}

/// Asserts that the counts in the status are correct.
async fn expect_audited(scenario: &Scenario) {
    let pods: Api<Pod> = Api::namespaced(scenario.lab.client(), SHOP);
    let all = pods.list(&ListParams::default()).await.unwrap();
    let modes: Vec<_> =
        all.iter().filter_map(isp_api::sidecar::Sidecar::of).map(|sidecar| sidecar.proxy).collect();
    let consistent = u32::try_from(modes.iter().filter(|mode| *mode == "TPROXY").count()).unwrap();
    let matching = u32::try_from(modes.len()).unwrap();
    scenario.expect_sidecars("the audit counts them", Counts { matching, consistent }).await;
}

async fn scale(scenario: &Scenario, replicas: u32) {
    let replicas = format!("--replicas={replicas}");
    scenario.lab.kubectl(["-n", SYSTEM, "scale", WEBHOOK, &replicas]).await.unwrap();
    scenario.lab.kubectl(["-n", SYSTEM, "rollout", "status", WEBHOOK, "--timeout=120s"]).await.unwrap();
    if replicas == "--replicas=0" {
        until("the webhook is gone", async || processes(scenario).await.is_empty()).await;
    } else {
        works_again(scenario).await;
    }
}

/// The PIDs of the webhook. All nodes of the lab share a PID namespace, and no other process has
/// this name.
async fn processes(scenario: &Scenario) -> Vec<String> {
    let found = scenario.lab.exec(&Place::ControlPlane, &["pidof", "webhook"]).await.unwrap();
    found.stdout.split_whitespace().map(str::to_owned).collect()
}

async fn signal(scenario: &Scenario, signal: &str, ids: &[String]) {
    assert!(!ids.is_empty());
    let arguments: Vec<&str> = ["kill", signal].into_iter().chain(ids.iter().map(String::as_str)).collect();
    assert!(scenario.lab.exec(&Place::ControlPlane, &arguments).await.unwrap().success);
}

/// Waits until a dry-run pod gets its mode; kube-proxy and API server need a few seconds.
pub(crate) async fn works_again(scenario: &Scenario) {
    until("the webhook answers", async || is_answered(scenario).await).await;
}

/// Whether a dry-run pod gets its mode.
async fn is_answered(scenario: &Scenario) -> bool {
    let pods: Api<Pod> = Api::namespaced(scenario.lab.client(), SHOP);
    let pod =
        json!({"metadata": {"name": "tried"}, "spec": {"containers": [{"name": "app", "image": "none"}]}});
    let pod = serde_json::from_value(pod).unwrap();
    let tried = PostParams { dry_run: true, ..PostParams::default() };
    let created = pods.create(&tried, &pod).await.unwrap();
    isp_api::sidecar::Sidecar::of(&created).is_some_and(|sidecar| sidecar.proxy == "TPROXY")
}

/// Replaces the CA bundle by a foreign one. The operator is stopped meanwhile, since it would
/// correct it at once.
async fn distrust(scenario: &Scenario) {
    let lab = &scenario.lab;
    let operators = lab.exec(&Place::ControlPlane, &["pidof", "operator"]).await.unwrap().stdout;
    let operators: Vec<String> = operators.split_whitespace().map(str::to_owned).collect();
    signal(scenario, "-STOP", &operators).await;
    let wrong = k8s_openapi::ByteString(std::fs::read(lab.authority()).unwrap());
    let patch =
        json!([{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": wrong}]).to_string();
    let configuration =
        ["patch", "mutatingwebhookconfiguration", "0-sourcepreserve.io", "--type=json", "-p", &patch];
    lab.kubectl(configuration).await.unwrap();
    // The API server watches its own configuration.
    until("the API server distrusts the webhook", async || !is_answered(scenario).await).await;
    let missed = make(scenario, "distrusted").await;
    signal(scenario, "-CONT", &operators).await;
    assert_eq!(missed, PODS, "the API server does not talk to strangers");
    expect_audited(scenario).await;
    works_again(scenario).await;
}

/// Kills the webhook repeatedly while pods are created.
async fn kill_meanwhile(scenario: &Scenario) {
    tokio::join!(
        async {
            for _ in 0..3 {
                let ids = processes(scenario).await;
                if !ids.is_empty() {
                    signal(scenario, "-KILL", &ids).await;
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        },
        make_and_count(scenario, "killed"),
    );
    works_again(scenario).await;
}

async fn clear(scenario: &Scenario) {
    let pods: Api<Pod> = Api::namespaced(scenario.lab.client(), SHOP);
    let faults = ListParams::default().labels("fault");
    pods.delete_collection(
        &DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() },
        &faults,
    )
    .await
    .unwrap();
    scenario.expect_sidecars("only the applications are left", Counts { matching: 2, consistent: 2 }).await;
}
