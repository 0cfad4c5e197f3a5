//! The IngressSourceNode of an agent, on a real API server: the agent restores a deleted or changed
//! report within seconds, does not fight another writer, and waits for a missing CRD.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::time::{Duration, Instant};

use isp_api::IngressSourceNode;
use isp_lab::ControlPlane;
use isp_testkit::agent::{Agent, NODE};
use isp_testkit::control_plane::{install_crds, kubectl};
use isp_testkit::{Patience, until};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

/// "Within seconds" on a busy machine.
const SOON: Patience = Patience::of(Duration::from_secs(20));

async fn is_written(nodes: &Api<IngressSourceNode>) -> bool {
    // Reads fail while the CRD is missing.
    let object = nodes.get_opt(NODE).await.ok().flatten();
    object.and_then(|object| object.status).is_some_and(|status| status.pool == "default")
}

fn repairs(agent: &Agent) -> u64 {
    let counter = "isp_agent_report_repairs_total ";
    agent.metrics().iter().find_map(|line| line.strip_prefix(counter)?.parse().ok()).unwrap()
}

#[tokio::test]
async fn what_somebody_deletes_or_changes_returns_within_seconds_and_nobody_is_fought() {
    let cluster = ControlPlane::shared().await.unwrap();
    let agent = Agent::of(env!("CARGO_BIN_EXE_proxy-agent")).start(cluster).await;
    let nodes: Api<IngressSourceNode> = Api::all(cluster.client().unwrap());
    until("the agent reports", async || is_written(&nodes).await).await;

    nodes.delete(NODE, &DeleteParams::default()).await.unwrap();
    SOON.until("a deleted object returns", async || is_written(&nodes).await).await;

    let change = json!({"status": {"pool": "forged", "active": true}});
    let forge = async || {
        nodes.patch_status(NODE, &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
    };
    forge().await;
    SOON.until("a changed object is as it was", async || is_written(&nodes).await).await;
    let status = nodes.get(NODE).await.unwrap().status.unwrap();
    assert!(!status.active, "{status:?}");

    // A writer that keeps changing the report wins most of the time, and causes few writes.
    let (before, began) = (repairs(&agent), Instant::now());
    while began.elapsed() < Duration::from_secs(20) {
        forge().await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let fought = repairs(&agent) - before;
    assert!((1..=5).contains(&fought), "{fought} repairs in 20 s");

    // The CRD is deleted, with all of its objects, and created again.
    let crd = "customresourcedefinition/ingresssourcenodes.sourcepreserve.io";
    kubectl(cluster, &["delete", crd, "--timeout=60s"]).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let said = agent
        .program
        .log()
        .lines()
        .filter(|line| line.contains("cannot write the report of this node; retrying"))
        .count();
    assert!(said <= 1, "a kind that is gone is one fact, told {said} times");
    assert_eq!(agent.ask(&["/version"]).0, 200, "kube-proxy is served meanwhile");
    install_crds(cluster).await;
    until("the report is there when its kind is", async || is_written(&nodes).await).await;
}
