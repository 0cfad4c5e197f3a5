//! What one node may see and why, who serves it, and what its agent has acknowledged. Pure.

use isp_api::names::{AGENT_POOL_LABEL, FAILURE_ANNOTATION};
use isp_api::node::IngressSourceNodeStatus;
use isp_api::validate::NodeIdentity;
use isp_api::view::{ObjectView, View, view};
use isp_api::{IngressSourceNode, IngressSourcePreserve};
use isp_plan::Key;
use isp_plan::cluster::{Node, Pod};
use kube::ResourceExt;

use crate::status::lag;
use crate::text::{Block, selector};

#[cfg(test)]
mod tests;

/// What concerns a node.
pub(super) struct Facts<'a> {
    pub(super) name: &'a str,
    pub(super) node: &'a Node,
    /// All objects.
    pub(super) objects: &'a [IngressSourcePreserve],
    /// What its agent reports.
    pub(super) report: Option<&'a IngressSourceNode>,
    /// The pods on it that run kube-proxy.
    pub(super) pods: &'a [(Key, Pod)],
}

/// Everything about it.
pub(super) fn tell(facts: &Facts<'_>) -> String {
    let mut block = Block::headed(&format!("{}: {}", facts.name, served(facts.node)));
    block.field("kube-proxy", kube_proxies(facts));
    let node = NodeIdentity { name: facts.name, labels: &facts.node.labels };
    let seen = view(node, facts.objects);
    for own in &seen.objects {
        if let Some(object) = facts.objects.iter().find(|object| object.name_any() == own.object) {
            block.field(&own.object, about(facts, object, own));
        }
    }
    if facts.objects.is_empty() {
        block.field("objects", ["none: the node sees everything".to_owned()]);
    }
    block.field("behind", behind(facts, &seen.objects));
    if let Some(failure) = &facts.node.failure {
        let name = facts.name;
        block.field("wrong", [format!("the agent of pool {} failed here: {}", failure.pool, failure.reason)]);
        block.field(
            "to do",
            [format!(
                "kubectl annotate node {name} {FAILURE_ANNOTATION}-   # tries it again once it is mended"
            )],
        );
    }
    block.0
}

/// Who serves the node, in a line.
fn served(node: &Node) -> String {
    let label = node.labels.get(AGENT_POOL_LABEL);
    let since = |handover: &isp_plan::record::Handover| handover.started.strftime("%F %T UTC").to_string();
    let served = match (&node.pool, &node.handover, label) {
        (Some(pool), None, _) => format!("the agent of pool {pool} serves it"),
        (Some(pool), Some(handover), _) => {
            format!("goes over to the agent of pool {pool} since {}", since(handover))
        }
        (None, Some(handover), _) => {
            let since = since(handover);
            format!(
                "goes back from the agent of pool {} to the cluster's kube-proxy since {since}",
                handover.pool
            )
        }
        (None, None, Some(pool)) => {
            format!("carries {AGENT_POOL_LABEL}={pool}, which the operator did not put there: remove it")
        }
        (None, None, None) => "the cluster's kube-proxy serves it".to_owned(),
    };
    if node.ready { served } else { format!("{served}; the node is not ready") }
}

/// The pods that run kube-proxy.
fn kube_proxies(facts: &Facts<'_>) -> Vec<String> {
    if facts.pods.is_empty() {
        return vec!["no pod runs it here".to_owned()];
    }
    let line = |(key, pod): &(Key, Pod)| {
        let place = if pod.role.is_some() { "behind the agent" } else { "the cluster's own" };
        let state = match &pod.trouble {
            Some(trouble) => trouble.clone(),
            None if pod.ready => "ready".to_owned(),
            None => "not ready".to_owned(),
        };
        format!("{place}: pod {key}, {state}")
    };
    facts.pods.iter().map(line).collect()
}

/// What one object means for the node.
fn about(facts: &Facts<'_>, object: &IngressSourcePreserve, own: &ObjectView) -> Vec<String> {
    let meaning = match own.view {
        View::Full => "it may see the Services as they are",
        View::ClusterOnly => "it may not see the external addresses of the Services",
        View::Hidden => "it may not see the Services at all, their ClusterIPs included",
    };
    let ingress = &object.spec.ingress_nodes.selector;
    let selected = object.spec.ingress_nodes.contains(&facts.node.labels).unwrap_or(false);
    let side = match (own.view, selected) {
        (View::Full, true) => "an ingress node: ingressNodes.selector matches",
        (View::Full, false) => {
            "kept as an ingress node, the last that serves a Service: status.ingressNodes lists it, ingressNodes.selector does not match"
        }
        (View::ClusterOnly | View::Hidden, _) => "elsewhere: ingressNodes.selector does not match",
    };
    let mut lines = vec![format!("{:?}: {meaning}", own.view), format!("{side} ({})", selector(ingress))];
    lines.extend(own.doubt.as_ref().map(|doubt| format!("in doubt: {doubt}")));
    if own.view != View::Full {
        lines.push(pool(facts.node, object));
        lines.push(acknowledged(status(facts), own));
    }
    lines
}

/// The first pool of the object that takes the node.
fn pool(node: &Node, object: &IngressSourcePreserve) -> String {
    let pools = object.spec.pools();
    if let Some(pool) = pools.iter().find(|pool| pool.contains(&node.labels).unwrap_or(false)) {
        return format!("in pool {}: its selector matches ({})", pool.name, selector(pool.selector));
    }
    let names: Vec<&str> = pools.iter().map(|pool| pool.name).collect();
    format!("in no pool: no selector of {} matches, so it gets no agent", names.join(", "))
}

fn status<'a>(facts: &Facts<'a>) -> Option<&'a IngressSourceNodeStatus> {
    facts.report.and_then(|report| report.status.as_ref())
}

fn acknowledged(status: Option<&IngressSourceNodeStatus>, own: &ObjectView) -> String {
    let Some(status) = status else { return "acknowledged: nothing, no agent reports".to_owned() };
    let Some(said) = status.views.iter().find(|view| view.uid == own.uid) else {
        return "acknowledged: nothing of this object".to_owned();
    };
    let relisted = if said.relisted { "read by kube-proxy" } else { "not read by kube-proxy yet" };
    let programmed = match said.programmed {
        Some(true) => "in the kernel",
        Some(false) => "not in the kernel yet",
        None => "the kernel cannot be looked at",
    };
    format!(
        "acknowledged: {:?} of generation {} (now {}), {relisted}, {programmed}",
        said.view, said.generation, own.generation
    )
}

/// What has not followed, of what the node should see.
fn behind(facts: &Facts<'_>, asked: &[ObjectView]) -> Vec<String> {
    let needed = asked.iter().any(|own| own.view != View::Full);
    let mut lines = Vec::new();
    match status(facts) {
        None if needed && facts.node.pool.is_none() => lines.push("the node has no agent yet".to_owned()),
        None if needed => lines.push("the agent has not reported".to_owned()),
        Some(status) if !status.proxy_connected => {
            lines.push("kube-proxy is not connected to the agent".to_owned());
        }
        _ => {}
    }
    if let Some(status) = status(facts) {
        for own in asked.iter().filter(|own| own.view != View::Full) {
            let said = status.views.iter().find(|view| view.uid == own.uid);
            lines.extend(lag(said, own.generation).map(|lag| format!("{}: {lag}", own.object)));
        }
    }
    let own = facts.pods.iter().filter(|(_, pod)| pod.role.is_none());
    if facts.node.pool.is_some() && own.count() > 0 {
        lines.push("the cluster's own kube-proxy has not ended here, and writes rules, too".to_owned());
    }
    lines
}
