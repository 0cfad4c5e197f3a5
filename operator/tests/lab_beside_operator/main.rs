//! Mode Beside on a real cluster of three nodes with a stock kube-proxy: an object comes, changes
//! its mode twice and goes under continuous traffic. kube-proxy's DaemonSet, configuration and pods
//! are compared while the mode is Beside, and everything at the end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod attacks;

use std::time::{Duration, Instant};

use isp_api::names::BESIDE_NAME;
use isp_lab::{KubeProxyState, Place};
use isp_testkit::traffic::{STEADY, Traffic};
use isp_testkit::until;
use isp_testkit::web_lab::{EDGE, ELSEWHERE, OBJECT, WebLab, addresses};
use k8s_openapi::api::apps::v1::DaemonSet;
use kube::Api;
use serde_json::json;

const LABEL: &str = "service.kubernetes.io/service-proxy-name";
const TABLE: &str = "ingress-source-preserve";

#[tokio::test]
async fn a_cluster_with_mode_beside_changes_it_and_is_restored_without_a_failed_request() {
    let began = Instant::now();
    let scenario = WebLab::up("beside-operator", env!("CARGO_BIN_EXE_operator")).await;
    scenario.install().await;
    let before = scenario.snapshot().await;
    let kube_proxy = KubeProxyState::look(&scenario.lab).await.unwrap();
    addresses::are_lost(&scenario).await;
    let step = |what: &str| println!("{what} after {:.1} s", began.elapsed().as_secs_f64());
    step("installed");

    let traffic = Traffic::start(&scenario, STEADY).await;
    apply(&scenario, "Beside").await;
    scenario.wait_until_ready().await;
    step("served beside kube-proxy");
    addresses::arrive(&scenario).await;
    assert_eq!(KubeProxyState::look(&scenario.lab).await.unwrap(), kube_proxy, "it is not touched");

    attacks::an_agent_is_lost(&scenario).await;
    attacks::the_label_is_removed(&scenario).await;
    attacks::another_proxy_claims_the_service(&scenario).await;
    step("attacked");
    assert_eq!(KubeProxyState::look(&scenario.lab).await.unwrap(), kube_proxy, "it is not touched");

    apply(&scenario, "Filter").await;
    wait_for_mode(&scenario, "Filter").await;
    step("filtered");
    addresses::arrive(&scenario).await;
    expect_no_tables(&scenario).await;

    apply(&scenario, "Beside").await;
    wait_for_mode(&scenario, "Beside").await;
    step("served beside kube-proxy again");
    addresses::arrive(&scenario).await;

    attacks::the_finalizer_is_removed(&scenario).await;
    step("given back without an object");
    apply(&scenario, "Beside").await;
    scenario.wait_until_ready().await;
    step("served beside kube-proxy for the third time");

    scenario.lab.kubectl(["delete", "isp", OBJECT, "--timeout=180s"]).await.unwrap();
    step("gone");
    // Covers a kube-proxy that takes the Service back late.
    tokio::time::sleep(Duration::from_secs(3)).await;
    traffic.expect_no_failure().await;
    scenario.expect_restored(&before).await;
    addresses::are_lost(&scenario).await;
    expect_no_tables(&scenario).await;
}

/// Creates the object or changes its mode.
async fn apply(scenario: &WebLab, mode: &str) {
    let object = json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourcePreserve", "metadata": {"name": OBJECT},
        "spec": {
            "ingressNodes": {"selector": {"matchLabels": {"node-role.kubernetes.io/ingress": ""}}},
            "services": [{"namespace": "web", "name": "frontend"}],
            "rollout": {"maxUnavailable": 2},
            "mode": mode,
        },
    });
    scenario.lab.apply(&object.to_string()).await.unwrap();
}

/// Waits until the object is ready in this mode, and nothing of the other one is left.
async fn wait_for_mode(scenario: &WebLab, mode: &str) {
    let sets: Api<DaemonSet> = Api::namespaced(scenario.lab.client(), "kube-system");
    until(&format!("only agents of mode {mode} are left"), async || {
        let object = scenario.objects().get(OBJECT).await.unwrap();
        let status = object.status.unwrap_or_default();
        let names: Vec<String> = sets
            .list(&kube::api::ListParams::default().labels("app.kubernetes.io/name=proxy-agent"))
            .await
            .unwrap()
            .into_iter()
            .filter_map(|set| set.metadata.name)
            .collect();
        let beside = names.iter().filter(|name| *name == BESIDE_NAME).count();
        let as_wanted = if mode == "Beside" { (1, 1) } else { (0, 1) };
        let ready = isp_api::conditions::find(&status.conditions, "Ready").cloned();
        let current = status.observed_generation == object.metadata.generation;
        let is_ready = ready.as_ref().is_some_and(|ready| ready.status == "True");
        if current && is_ready && (beside, names.len()) == as_wanted {
            Ok(())
        } else {
            Err(format!("{names:?}, {:?}", ready.map(|ready| ready.message)))
        }
    })
    .await;
}

async fn expect_no_tables(scenario: &WebLab) {
    for node in [EDGE, ELSEWHERE[0], ELSEWHERE[1]] {
        let place = Place::Node(node.to_owned());
        let tables = scenario.lab.exec(&place, &["nft", "list", "tables"]).await.unwrap().stdout;
        assert!(!tables.contains(TABLE), "{node}: {tables}");
    }
}
