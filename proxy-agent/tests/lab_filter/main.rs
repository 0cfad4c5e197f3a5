//! The stock kube-proxy behind the agent, on a real node: the rules in the kernel, and real
//! connections.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod campaign;
mod harness;
mod processes;
mod rules;

use std::collections::BTreeSet;
use std::time::Duration;

use harness::{NODE, Scenario};
use isp_api::IngressSourceNode;
use isp_lab::provision::KubernetesVersion::{self, V1_33, V1_37};
use isp_lab::{Place, Protocol, ProxyMode};
use isp_testkit::until;
use kube::Api;
use processes::{Behind, Direct, clean_up, forget_acknowledgement};

const EXTERNAL: &str = "192.0.2.50";

/// Compares the rules behind an agent with those without one, for several releases of kube-proxy.
async fn the_view_of_a_node_elsewhere(name: &str, mode: ProxyMode) {
    let scenario = Scenario::up(name, mode).await;
    // Without an agent, the node has rules for everything.
    let direct = scenario.settled_rules().await;
    scenario.take_kube_proxy_away().await;
    what_an_agent_changes(&scenario, V1_37, &direct).await;

    // API servers support kube-proxies that are up to three releases older. This one is four
    // releases older: the API that it reads has not changed since, and the lab need not build the
    // rest of an older release.
    clean_up(&scenario, V1_37).await;
    let kube_proxy = Direct::start(&scenario, V1_33).await;
    let direct = scenario.settled_rules().await;
    drop(kube_proxy);
    clean_up(&scenario, V1_33).await;
    what_an_agent_changes(&scenario, V1_33, &direct).await;
}

async fn what_an_agent_changes(scenario: &Scenario, version: KubernetesVersion, direct: &BTreeSet<String>) {
    // Behind an agent with nothing to hide, the node has exactly the same rules.
    let mut behind = Behind::start(scenario, version).await;
    until("the agent acknowledges", async || scenario.ready().await).await;
    scenario.expect_rules("behind an agent with nothing to hide", direct).await;
    assert!(behind.is_of_its_release().await, "this is not {version}");

    let cluster_ips = [scenario.cluster_ip("narrowed").await, scenario.cluster_ip("hidden").await];
    scenario.preserve("narrowed", "ClusterOnly").await;
    scenario.preserve("hidden", "Hidden").await;
    until("the kernel follows the view", async || {
        let rules = scenario.rules().await;
        rules.contains(&cluster_ips[0]) && !rules.contains(EXTERNAL) && !rules.contains(&cluster_ips[1])
    })
    .await;
    until("both objects are acknowledged", async || {
        let nodes: Api<IngressSourceNode> = Api::all(scenario.lab.client());
        let status = nodes.get(NODE).await.unwrap().status.unwrap();
        status.active
            && status.views.len() == 2
            && status.views.iter().all(|view| view.received && view.programmed == Some(true))
    })
    .await;

    // The ClusterIP still works from the node, traffic to the external address leaves the node, and
    // the rest is unchanged.
    let node = Place::Node(NODE.to_owned());
    let answer = scenario.lab.ask(&node, Protocol::Http, &format!("{}:80", cluster_ips[0])).await.unwrap();
    assert!(answer.peer().is_some(), "{answer:?}");
    let answer = scenario.lab.ask(&node, Protocol::Http, &format!("{}:80", cluster_ips[1])).await.unwrap();
    assert_eq!(answer.peer(), None);
    scenario.external_address_reaches_the_ingress_node(&node, EXTERNAL).await;

    // The agent dies and restarts: the rules stay, and stay narrowed.
    forget_acknowledgement(scenario).await;
    behind.replace_agent(Duration::from_secs(2)).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(!scenario.rules().await.contains(EXTERNAL));
    until("a restarted agent acknowledges", async || scenario.ready().await).await;

    scenario.forget().await;
    scenario.expect_rules("with nothing to hide again", direct).await;
}

/// Runs the pool's DaemonSet, derived from the cluster's own: the handover keeps the rules, and the
/// agent in the pod enforces the view.
#[tokio::test]
async fn a_pool_of_agents_takes_over_from_the_clusters_kube_proxy() {
    let scenario = Scenario::up("filter-pool", ProxyMode::Nftables).await;
    let direct = scenario.settled_rules().await;
    scenario.take_kube_proxy_away().await;
    scenario.run_pool("default").await;
    until("the agent acknowledges", async || scenario.ready().await).await;
    scenario.expect_rules("behind the pool's agent", &direct).await;

    scenario.preserve("narrowed", "ClusterOnly").await;
    until("the kernel follows", async || !scenario.rules().await.contains(EXTERNAL)).await;
    // The kubelet restarts a killed agent. kube-proxy, which did not restart, still trusts it.
    scenario.kill_agent_container().await;
    until("the agent is back", async || scenario.agent_restarts().await > 0 && scenario.ready().await).await;
    scenario.preserve("hidden", "Hidden").await;
    let hidden = scenario.cluster_ip("hidden").await;
    until("a later view is followed", async || !scenario.rules().await.contains(&hidden)).await;
}

#[tokio::test]
async fn a_node_elsewhere_sees_what_its_view_says_in_nftables_mode() {
    the_view_of_a_node_elsewhere("filter-nft", ProxyMode::Nftables).await;
}

#[tokio::test]
async fn a_node_elsewhere_sees_what_its_view_says_in_iptables_mode() {
    the_view_of_a_node_elsewhere("filter-ipt", ProxyMode::Iptables).await;
}
