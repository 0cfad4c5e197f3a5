//! The IngressSourceNode of an agent, on a real API server: the agent restores a deleted or changed
//! report within seconds, does not fight another writer, and waits for a missing CRD.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod agent;

use std::path::Path;
use std::time::{Duration, Instant};

use agent::{Agent, AgentToken, NODE};
use isp_api::IngressSourceNode;
use isp_lab::{ControlPlane, until};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

/// "Within seconds" on a busy machine.
const SOON: Duration = Duration::from_secs(10);
const LATER: Duration = Duration::from_mins(2);

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
    let agent = Agent::start(cluster, AgentToken::Agent).await;
    let nodes: Api<IngressSourceNode> = Api::all(cluster.client().unwrap());
    until(LATER, "the agent reports", async || is_written(&nodes).await).await;

    nodes.delete(NODE, &DeleteParams::default()).await.unwrap();
    until(SOON, "a deleted object returns", async || is_written(&nodes).await).await;

    let change = json!({"status": {"pool": "forged", "proxyConnected": true}});
    let forge = async || {
        nodes.patch_status(NODE, &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
    };
    forge().await;
    until(SOON, "a changed object is as it was", async || is_written(&nodes).await).await;
    let status = nodes.get(NODE).await.unwrap().status.unwrap();
    assert!(!status.proxy_connected, "{status:?}");

    // A writer that keeps changing the report wins most of the time, and causes few writes.
    let (before, began) = (repairs(&agent), Instant::now());
    while began.elapsed() < Duration::from_secs(20) {
        forge().await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let fought = repairs(&agent) - before;
    assert!((1..=5).contains(&fought), "{fought} repairs in 20 s");

    // The CRD is deleted, with all of its objects, and created again.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let crd = "customresourcedefinition/ingresssourcenodes.sourcepreserve.io";
    assert!(cluster.kubectl(&["delete", crd, "--timeout=60s"]).await.unwrap().success);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let said = agent
        .program
        .log()
        .lines()
        .filter(|line| line.contains("cannot write the report of this node; retrying"))
        .count();
    assert!(said <= 1, "a kind that is gone is one fact, told {said} times");
    assert_eq!(agent.ask(&["/version"]).0, 200, "kube-proxy is served meanwhile");
    let definitions = root.join("crds").display().to_string();
    assert!(cluster.kubectl(&["apply", "--server-side", "-f", &definitions]).await.unwrap().success);
    until(LATER, "the report is there when its kind is", async || is_written(&nodes).await).await;
}
