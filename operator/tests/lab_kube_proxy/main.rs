//! kube-proxy as shipped by distributions: each is handed over to the agent and back without a
//! failed request, or rejected with a reason and a remedy. One cluster, whose kube-proxy is
//! replaced repeatedly. docs/kube-proxy.md has the table.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod harness;

use std::fs;
use std::time::Instant;

use harness::Scenario;
use isp_lab::Shipped;
use isp_testkit::web_lab::{ELSEWHERE, has_agent_label};

/// The path in the manifests of `host-file`, `host-directory` and `kops`, below `/var/lib`.
const KUBECONFIG: &str = "kube-proxy/kubeconfig";

#[tokio::test]
async fn kube_proxy_as_it_is_shipped_is_handed_over_and_back_or_refused_with_the_way_out() {
    let scenario = Scenario::up("vendors").await;

    for shipped in [Shipped::Kubespray, Shipped::Eks, Shipped::Parts] {
        is_handed_over_and_back(&scenario, shipped).await;
    }
    let token = kubeconfig_with_token(&scenario);
    scenario.write_to_nodes(KUBECONFIG, &token, 0o644);
    is_handed_over_and_back(&scenario, Shipped::HostFile).await;

    let client_certificate = fs::read_to_string(scenario.lab.kube_proxy_kubeconfig()).unwrap();
    scenario.write_to_nodes(KUBECONFIG, &client_certificate, 0o644);
    is_handed_over_and_back(&scenario, Shipped::HostDirectory).await;
    agents_that_cannot_start_are_rolled_back_with_their_reasons(&scenario, &client_certificate).await;

    let reason = ["container kube-proxy", "neither --config nor --kubeconfig", "kubeconfig from a ConfigMap"];
    is_refused(&scenario, Shipped::Aks, "KubeProxyUnusable", &reason).await;
    scenario.write_to_nodes(KUBECONFIG, &client_certificate, 0o400);
    let reason = ["no DaemonSet runs kube-proxy", "static pod", "nothing has been changed"];
    is_refused(&scenario, Shipped::Kops, "KubeProxyNotFound", &reason).await;
}

async fn is_handed_over_and_back(scenario: &Scenario, shipped: Shipped) {
    let began = Instant::now();
    let after = |what: &str| println!("{shipped}: {what} after {:.1} s", began.elapsed().as_secs_f64());
    scenario.replace(shipped).await;
    after("in place");
    let asking = scenario.keep_asking().await;
    scenario.apply("{}").await;
    scenario.wait_until_ready().await;
    after("handed over");
    scenario.addresses_arrive().await;
    scenario.delete().await;
    after("handed back");
    scenario.addresses_are_lost().await;
    let sent = asking.expect_no_failure().await;
    after(&format!("done with {sent} requests"));
}

/// If no agent can be created, nothing is changed.
async fn is_refused(scenario: &Scenario, shipped: Shipped, reason: &str, parts: &[&str]) {
    scenario.replace(shipped).await;
    let asking = scenario.keep_asking().await;
    scenario.apply("{}").await;
    let message = scenario.wait_until_said(reason).await;
    println!("{shipped}: {reason}: {message}");
    expect_parts(&message, parts);
    for node in ELSEWHERE {
        assert!(!has_agent_label(&scenario.lab, node).await, "{node} was touched");
    }
    scenario.delete().await;
    scenario.addresses_are_lost().await;
    asking.expect_no_failure().await;
}

/// Only the agent can detect a bad file on a node. It exits with the reason, which appears in the
/// status when the wave is rolled back.
async fn agents_that_cannot_start_are_rolled_back_with_their_reasons(scenario: &Scenario, kubeconfig: &str) {
    // kube-proxy can read it, the agent cannot.
    scenario.write_to_nodes(KUBECONFIG, kubeconfig, 0o600);
    let asking = scenario.keep_asking().await;
    scenario.apply(r#"{"maxUnavailable": "100%", "progressDeadlineSeconds": 45}"#).await;
    let message = scenario.wait_until_said("WaveFailed").await;
    println!("host-directory: {message}");
    expect_parts(
        &message,
        &["node work-", "container proxy-agent", "Permission denied", "does not run as root"],
    );
    // Each node records its own reason; the order is not defined.
    for node in ELSEWHERE {
        expect_parts(&scenario.failure_of(node).await, &["Permission denied"]);
    }
    scenario.wait_until_handed_back().await;
    scenario.delete().await;
    scenario.addresses_are_lost().await;
    asking.expect_no_failure().await;
}

fn expect_parts(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
}

/// A kubeconfig as found on a node, with the ServiceAccount token of the pod that reads it.
fn kubeconfig_with_token(scenario: &Scenario) -> String {
    const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
    serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "here", "cluster": {
            "server": scenario.lab.server(), "certificate-authority": format!("{ACCOUNT}/ca.crt"),
        }}],
        "users": [{"name": "pod", "user": {"tokenFile": format!("{ACCOUNT}/token")}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "pod"}}],
        "current-context": "here",
    })
    .to_string()
}
