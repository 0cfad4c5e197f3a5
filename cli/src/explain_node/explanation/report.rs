//! The same facts about a node as data, for `explain-node -o json`. Pure.

use isp_api::preserve::Mode;
use isp_api::view::{ObjectView, View};
use isp_plan::Key;
use isp_plan::cluster::Pod;
use kube::ResourceExt;
use schemars::JsonSchema;
use serde::Serialize;

use super::object::{is_left_out, object_lines, pool_of, view_of};
use super::{Assessment, Facts, agent_mode, heading};

/// One node, explained.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeReport {
    /// The name of the node.
    node: String,
    /// Whether the node is as it should be.
    pub(crate) sound: bool,
    /// Whether the node's own Ready condition is true.
    ready: bool,
    /// The proxies that serve the node, in a sentence.
    summary: String,
    /// The pool of the agent that serves the node, in mode Filter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<String>,
    /// The pods on the node that run kube-proxy.
    kube_proxies: Vec<ProxyPod>,
    /// The pods on the node with an agent of mode Beside.
    beside_agents: Vec<ProxyPod>,
    /// The effect of each object on the node.
    objects: Vec<ObjectReport>,
    /// Whatever has not followed yet, a sentence each.
    behind: Vec<String>,
    /// Why the operator removed the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<FailureReport>,
}

/// A pod that runs kube-proxy or an agent.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct ProxyPod {
    /// Namespace and name.
    pod: String,
    /// Whether the operator created it. A kube-proxy in it reads the API through an agent.
    of_operator: bool,
    /// Whether all its containers are ready.
    ready: bool,
    /// Why a container does not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<String>,
}

/// The effect of one object on the node.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectReport {
    /// The name of the IngressSourcePreserve.
    object: String,
    /// Its mode.
    mode: Mode,
    /// Its current generation.
    generation: i64,
    /// What the node should see of its Services.
    view: View,
    /// Whether `ingressNodes.selector` matches the node.
    selected: bool,
    /// Whether the node is an ingress node of the object: `selected`, or kept as the last one that
    /// serves a Service.
    ingress_node: bool,
    /// Whether the operator gives the node no agent for it.
    left_out: bool,
    /// The pool of the object that selects the node, in mode Filter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<String>,
    /// Why the view is not certain.
    #[serde(skip_serializing_if = "Option::is_none")]
    doubt: Option<String>,
    /// The last acknowledgement of the node's agent. Absent: none for this object.
    #[serde(skip_serializing_if = "Option::is_none")]
    acknowledged: Option<Acknowledgement>,
    /// The same in sentences.
    description: Vec<String>,
}

/// What an agent has acknowledged.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct Acknowledgement {
    /// The generation of the object.
    generation: i64,
    /// The view of its Services.
    view: View,
    /// Mode Filter: whether kube-proxy has listed the Services; mode Beside: whether the agent has
    /// the view.
    received: bool,
    /// Whether the kernel has it. Null: its rules cannot be read.
    programmed: Option<bool>,
    /// Mode Beside: the Services of the object that the agent serves.
    services: Vec<String>,
}

/// An agent that the operator removed.
#[derive(Debug, JsonSchema, Serialize)]
struct FailureReport {
    /// The pool of the agent.
    pool: String,
    /// The cause.
    reason: String,
}

pub(crate) fn report(facts: &Facts<'_>) -> NodeReport {
    let Assessment { views, behind, sound } = Assessment::of(facts);
    let failure = facts.node.failure.as_ref();
    NodeReport {
        node: facts.name.to_owned(),
        sound,
        ready: facts.node.ready,
        summary: heading(facts),
        pool: facts.node.pool.clone(),
        kube_proxies: facts.kube_proxy_pods().map(proxy_pod).collect(),
        beside_agents: facts.beside_pods().map(proxy_pod).collect(),
        objects: views.iter().filter_map(|own| object_report(facts, own)).collect(),
        behind,
        failure: failure
            .map(|failure| FailureReport { pool: failure.pool.clone(), reason: failure.reason.clone() }),
    }
}

fn proxy_pod((key, pod): &(Key, Pod)) -> ProxyPod {
    ProxyPod {
        pod: key.to_string(),
        of_operator: pod.role.is_some(),
        ready: pod.ready,
        trouble: pod.trouble.clone(),
    }
}

fn object_report(facts: &Facts<'_>, own: &ObjectView) -> Option<ObjectReport> {
    let object = facts.objects.iter().find(|object| object.name_any() == own.object)?;
    let mode = object.spec.mode;
    let acknowledged = view_of(facts.report(agent_mode(mode)), own);
    Some(ObjectReport {
        object: own.object.clone(),
        mode,
        generation: own.generation,
        view: own.view,
        selected: object.spec.ingress_nodes.contains(&facts.node.labels).unwrap_or(false),
        ingress_node: own.view == View::Full,
        left_out: is_left_out(facts.name, object),
        pool: (mode == Mode::Filter).then(|| pool_of(facts.node, object)).flatten(),
        doubt: own.doubt.as_ref().map(ToString::to_string),
        acknowledged: acknowledged.map(|view| Acknowledgement {
            generation: view.generation,
            view: view.view,
            received: view.received,
            programmed: view.programmed,
            services: view.services.clone(),
        }),
        description: object_lines(facts, object, own),
    })
}
