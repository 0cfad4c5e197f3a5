//! A second client with kube-proxy's credentials, against a real API server: its reads do not
//! acknowledge a view for kube-proxy.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::time::Duration;

use isp_api::{IngressSourceNode, IngressSourcePreserve};
use isp_lab::ControlPlane;
use isp_testkit::agent::{Agent, Lines, NODE};
use isp_testkit::{preserve, until};
use kube::Api;
use kube::api::PostParams;

const FROM_START: &str = "/api/v1/services?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

/// Opens a watch with this User-Agent, and reads to the end of the initial events.
fn watch(agent: &Agent, name: &str) -> Lines {
    let user_agent = format!("-HUser-Agent: {name}/v1.37.0 (linux/amd64) kubernetes/0a1b2c3");
    let watch = agent.follow(&[&user_agent, "-HAccept: application/json", FROM_START]);
    while !watch.next().unwrap().contains("initial-events-end") {}
    watch
}

/// Returns `active`, and `received` of the object, from the agent's report.
async fn reported(cluster: &ControlPlane) -> Option<(bool, bool)> {
    let nodes: Api<IngressSourceNode> = Api::all(cluster.client().unwrap());
    let status = nodes.get_opt(NODE).await.unwrap()?.status?;
    let view = status.views.iter().find(|view| view.object == "hidden")?;
    Some((status.active, view.received))
}

#[tokio::test]
async fn another_client_with_its_credentials_does_not_acknowledge_for_kube_proxy() {
    let cluster = ControlPlane::shared().await.unwrap();
    let agent = Agent::of(env!("CARGO_BIN_EXE_proxy-agent")).start(cluster).await;
    agent.wait_for_services();
    let kube_proxy = watch(&agent, "kube-proxy");

    let objects: Api<IngressSourcePreserve> = Api::all(cluster.client().unwrap());
    objects.create(&PostParams::default(), &preserve::object("hidden", "Hidden")).await.unwrap();
    assert_eq!(kube_proxy.next(), None, "the view changed, so the watch ends");

    // Another client reads before kube-proxy is back.
    let other = watch(&agent, "kubectl");
    until("the view is told of", async || reported(cluster).await.is_some()).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(reported(cluster).await, Some((false, false)), "kube-proxy has not read it");

    let kube_proxy = watch(&agent, "kube-proxy");
    until("kube-proxy has read it", async || reported(cluster).await == Some((true, true))).await;
    drop(other);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(reported(cluster).await, Some((true, true)), "the other has left, which changes nothing");
    drop(kube_proxy);
}
