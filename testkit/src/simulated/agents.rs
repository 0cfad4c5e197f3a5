//! Stands in for the scheduler and the agents, which cannot run on simulated nodes. kwok does the
//! rest.

use std::collections::BTreeMap;
use std::time::Duration;

use isp_api::names::{AGENT_MODE_LABEL, BESIDE_MODE};
use isp_api::node::AgentMode;
use isp_api::validate::NodeIdentity;
use isp_api::view::view;
use isp_api::{IngressSourceNode, IngressSourcePreserve};
use k8s_openapi::api::core::v1::{Node, Pod, Service};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// Binds DaemonSet pods to their nodes and acknowledges for the agents, until the task is aborted.
pub fn stand_in(client: Client) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut said = BTreeMap::new();
        loop {
            // The API server may be busy; the next iteration retries.
            let _ = bind(&client).await;
            let _ = acknowledge(&client, &mut said).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
}

/// Binds each DaemonSet pod to the node in its affinity, as a scheduler would.
async fn bind(client: &Client) -> Result<(), kube::Error> {
    let pods: Api<Pod> = Api::all(client.clone());
    for pod in pods.list(&ListParams::default().fields("spec.nodeName=")).await? {
        let spec = json!(pod.spec);
        let terms = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        let node = &terms["nodeSelectorTerms"][0]["matchFields"][0]["values"][0];
        if let (Some(node), Some(namespace)) = (node.as_str(), pod.namespace()) {
            let binding = json!({
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod.name_any()},
                "target": {"apiVersion": "v1", "kind": "Node", "name": node},
            });
            let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
            let _: Value =
                pods.create_subresource("binding", &pod.name_any(), &PostParams::default(), &binding).await?;
        }
    }
    Ok(())
}

/// The node's view of each object, as its agent reports it. An agent of mode Beside also names the
/// Services that it serves.
fn views(
    mode: AgentMode,
    node: &Node,
    objects: &[IngressSourcePreserve],
    services: &[Service],
) -> Vec<Value> {
    let node = NodeIdentity { name: &node.name_any(), labels: node.labels() };
    let seen = view(node, objects).objects.into_iter();
    seen.map(|own| {
        let served = services.iter().filter(|service| own.served(service.labels(), true).is_some());
        let names = served.map(|service| format!("{}/{}", service.namespace().unwrap(), service.name_any()));
        let names: Vec<String> = names.filter(|_| mode == AgentMode::Beside).collect();
        json!({
            "object": own.object, "uid": own.uid, "generation": own.generation, "view": own.view, "received": true,
            "services": names,
        })
    })
    .collect()
}

/// Writes the reports of agents whose kube-proxies have read the view, per pod. Like real agents,
/// only on change.
async fn acknowledge(client: &Client, said: &mut BTreeMap<String, Vec<Value>>) -> Result<(), kube::Error> {
    let everything = ListParams::default();
    let objects = Api::<IngressSourcePreserve>::all(client.clone()).list(&everything).await?.items;
    let nodes = Api::<Node>::all(client.clone()).list(&everything).await?.items;
    let services = Api::<Service>::all(client.clone()).list(&everything).await?.items;
    let nodes: BTreeMap<String, Node> = nodes.into_iter().map(|node| (node.name_any(), node)).collect();
    let pods: Api<Pod> = Api::all(client.clone());
    for pod in pods.list(&ListParams::default().labels("app.kubernetes.io/name=proxy-agent")).await? {
        let running = pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"));
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        let Some(node) = node.filter(|_| running && pod.metadata.deletion_timestamp.is_none()) else {
            continue;
        };
        let Some(object) = nodes.get(&node) else { continue };
        let label = |key: &str| pod.labels().get(key).cloned().unwrap_or_default();
        let mode = if label(AGENT_MODE_LABEL) == BESIDE_MODE { AgentMode::Beside } else { AgentMode::Filter };
        let views = views(mode, object, &objects, &services);
        if said.get(&pod.name_any()) == Some(&views) {
            continue;
        }
        let (pool, revision) =
            (label("sourcepreserve.io/agent-pool"), label("sourcepreserve.io/agent-revision"));
        let name = mode.report_name(&node);
        let mut report = json!({
            "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourceNode", "metadata": {"name": name},
        });
        let reports: Api<IngressSourceNode> = Api::all(client.clone());
        let mine = PatchParams::apply("agents").force();
        reports.patch(&name, &mine, &Patch::Apply(&report)).await?;
        report["status"] =
            json!({"pool": pool, "revision": revision, "mode": mode, "active": true, "views": views});
        reports.patch_status(&name, &mine, &Patch::Apply(&report)).await?;
        said.insert(pod.name_any(), views.clone());
    }
    Ok(())
}
