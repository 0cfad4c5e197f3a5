//! Explains one node: which preserved Services it may see and why, which kube-proxy serves it, and
//! what its agent has acknowledged. Pure.

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

/// The facts about a node.
pub(super) struct Facts<'a> {
    pub(super) name: &'a str,
    pub(super) node: &'a Node,
    pub(super) objects: &'a [IngressSourcePreserve],
    /// The report of its agent.
    pub(super) report: Option<&'a IngressSourceNode>,
    /// The pods on it that run kube-proxy.
    pub(super) pods: &'a [(Key, Pod)],
    /// The width of the terminal.
    pub(super) width: Option<usize>,
}

/// The text, and whether the node is as it should be.
pub(super) struct Explanation {
    pub(super) text: String,
    pub(super) sound: bool,
}

pub(super) fn explain(facts: &Facts<'_>) -> Explanation {
    let heading = format!("{}: {}", facts.name, served_by(facts.node));
    let mut block = Block::new(&heading, facts.width);
    block.field("kube-proxy", kube_proxies(facts));
    let node = NodeIdentity { name: facts.name, labels: &facts.node.labels };
    let views = view(node, facts.objects).objects;
    for own in &views {
        if let Some(object) = facts.objects.iter().find(|object| object.name_any() == own.object) {
            block.field(&own.object, object_lines(facts, object, own));
        }
    }
    if facts.objects.is_empty() {
        block.field("objects", ["none: the node sees all Services".to_owned()]);
    }
    let behind = behind(facts, &views);
    let sound = behind.is_empty() && is_settled(facts) && views.iter().all(|own| own.doubt.is_none());
    block.field("behind", behind);
    if let Some(failure) = &facts.node.failure {
        let name = facts.name;
        let problem = format!("the agent of pool {} failed on this node: {}", failure.pool, failure.reason);
        block.field("problem", [problem]);
        let retry = format!(
            "kubectl annotate node {name} {FAILURE_ANNOTATION}-   # retries, once the cause is fixed"
        );
        block.commands("to do", [retry]);
    }
    Explanation { text: block.into_text(), sound }
}

/// Whether the node is ready, does not move between kube-proxies, and no pod of it fails.
fn is_settled(facts: &Facts<'_>) -> bool {
    let node = facts.node;
    let stray = node.pool.is_none() && node.labels.contains_key(AGENT_POOL_LABEL);
    let fails = |pod: &Pod| pod.trouble.is_some() || pod.role.is_some() && !pod.ready;
    node.ready
        && node.handover.is_none()
        && node.failure.is_none()
        && !stray
        && !facts.pods.iter().any(|(_, pod)| fails(pod))
}

/// The kube-proxy that serves the node, in a line.
fn served_by(node: &Node) -> String {
    let label = node.labels.get(AGENT_POOL_LABEL);
    let since = |handover: &isp_plan::record::Handover| handover.started.strftime("%F %T UTC").to_string();
    let served = match (&node.pool, &node.handover, label) {
        (Some(pool), None, _) => format!("served by the agent of pool {pool}"),
        (Some(pool), Some(handover), _) => {
            format!("moving to the agent of pool {pool} since {}", since(handover))
        }
        (None, Some(handover), _) => {
            let (pool, since) = (&handover.pool, since(handover));
            format!("moving back from the agent of pool {pool} to the cluster's kube-proxy since {since}")
        }
        (None, None, Some(pool)) => {
            format!("has label {AGENT_POOL_LABEL}={pool}, which the operator did not set: remove it")
        }
        (None, None, None) => "served by the cluster's kube-proxy".to_owned(),
    };
    if node.ready { served } else { format!("{served}; the node is NotReady") }
}

/// The pods that run kube-proxy.
fn kube_proxies(facts: &Facts<'_>) -> Vec<String> {
    if facts.pods.is_empty() {
        return vec!["no pod on this node runs it".to_owned()];
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

/// The effect of one object on the node.
fn object_lines(facts: &Facts<'_>, object: &IngressSourcePreserve, own: &ObjectView) -> Vec<String> {
    let meaning = match own.view {
        View::Full => "the node sees all addresses of the Services",
        View::ClusterOnly => "the node does not see the external addresses of the Services",
        View::Hidden => "the node does not see the Services at all, not even their ClusterIPs",
    };
    let ingress = &object.spec.ingress_nodes.selector;
    let selected = object.spec.ingress_nodes.contains(&facts.node.labels).unwrap_or(false);
    let side = match (own.view, selected) {
        (View::Full, true) => "ingress node: ingressNodes.selector matches",
        (View::Full, false) => {
            "kept as ingress node, because it is the last one that serves a Service: status.ingressNodes lists it, \
             ingressNodes.selector does not match"
        }
        (View::ClusterOnly | View::Hidden, _) => "non-ingress node: ingressNodes.selector does not match",
    };
    let mut lines = vec![format!("{:?}: {meaning}", own.view), format!("{side} ({})", selector(ingress))];
    lines.extend(own.doubt.as_ref().map(|doubt| format!("in doubt: {doubt}")));
    if is_left_out(facts.name, object) {
        lines.push(
            "left out: the cluster's kube-proxy does not run on this node, so it needs no agent".to_owned(),
        );
    } else if own.view != View::Full {
        lines.push(pool_line(facts.node, object));
        lines.push(acknowledged(status(facts), own));
    }
    lines
}

/// Whether the operator gives the node no agent because no kube-proxy runs there.
fn is_left_out(node: &str, object: &IngressSourcePreserve) -> bool {
    let left_out = object.status.as_ref().and_then(|status| status.left_out.as_ref());
    left_out.is_some_and(|left_out| left_out.nodes.iter().any(|name| name == node))
}

/// Whether a pool of the object selects the node.
fn is_in_pool(node: &Node, object: &IngressSourcePreserve) -> bool {
    object.spec.pools().iter().any(|pool| pool.contains(&node.labels).unwrap_or(false))
}

/// The first pool of the object that selects the node.
fn pool_line(node: &Node, object: &IngressSourcePreserve) -> String {
    let pools = object.spec.pools();
    if let Some(pool) = pools.iter().find(|pool| pool.contains(&node.labels).unwrap_or(false)) {
        return format!("in pool {}: its selector matches ({})", pool.name, selector(pool.selector));
    }
    let names: Vec<&str> = pools.iter().map(|pool| pool.name).collect();
    format!("in no pool: no selector of {} matches, so the node gets no agent", names.join(", "))
}

fn status<'a>(facts: &Facts<'a>) -> Option<&'a IngressSourceNodeStatus> {
    facts.report.and_then(|report| report.status.as_ref())
}

fn acknowledged(status: Option<&IngressSourceNodeStatus>, own: &ObjectView) -> String {
    let Some(status) = status else { return "acknowledged: nothing, no agent reports".to_owned() };
    let Some(view) = status.views.iter().find(|view| view.uid == own.uid) else {
        return "acknowledged: nothing of this object".to_owned();
    };
    let relisted = if view.relisted { "listed by kube-proxy" } else { "not listed by kube-proxy yet" };
    let programmed = match view.programmed {
        Some(true) => "programmed in the kernel",
        Some(false) => "not programmed in the kernel yet",
        None => "the kernel's rules cannot be read",
    };
    format!(
        "acknowledged: {:?} at generation {} (current: {}), {relisted}, {programmed}",
        view.view, view.generation, own.generation
    )
}

/// Whatever has not followed yet, of the views that the node should have.
fn behind(facts: &Facts<'_>, wanted: &[ObjectView]) -> Vec<String> {
    let mut lines = Vec::new();
    let is_narrowed = |own: &&ObjectView| own.view != View::Full;
    let object_of = |own: &ObjectView| facts.objects.iter().find(|object| object.name_any() == own.object);
    let narrowing = wanted.iter().filter(is_narrowed).filter_map(object_of);
    let narrowing = narrowing.filter(|object| !is_left_out(facts.name, object));
    let (pooled, unpooled): (Vec<_>, Vec<_>) = narrowing.partition(|object| is_in_pool(facts.node, object));
    for object in unpooled {
        lines.push(format!("{}: no pool selects the node, so it gets no agent", object.name_any()));
    }
    let needs_agent = !pooled.is_empty();
    match status(facts) {
        None if needs_agent && facts.node.pool.is_none() => {
            lines.push("the node has no agent yet".to_owned());
        }
        None if needs_agent => lines.push("the agent has not reported yet".to_owned()),
        Some(status) if !status.proxy_connected => {
            lines.push("kube-proxy is not connected to the agent".to_owned());
        }
        _ => {}
    }
    if let Some(status) = status(facts) {
        for own in wanted {
            let view = status.views.iter().find(|view| view.uid == own.uid);
            lines.extend(lag(view, own.view, own.generation).map(|lag| format!("{}: {lag}", own.object)));
        }
    }
    let own = facts.pods.iter().filter(|(_, pod)| pod.role.is_none());
    if facts.node.pool.is_some() && own.count() > 0 {
        lines.push("the cluster's own kube-proxy still runs on the node and writes rules, too".to_owned());
    }
    lines
}
