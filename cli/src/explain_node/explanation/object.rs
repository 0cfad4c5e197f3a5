//! The effect of one object on the node.

use isp_api::IngressSourcePreserve;
use isp_api::node::{AcknowledgedView, IngressSourceNodeStatus};
use isp_api::preserve::Mode;
use isp_api::view::{ObjectView, View};
use isp_plan::cluster::Node;

use super::{Facts, agent_mode};
use crate::text::{few, selector};

pub(super) fn object_lines(
    facts: &Facts<'_>,
    object: &IngressSourcePreserve,
    own: &ObjectView,
) -> Vec<String> {
    let mode = object.spec.mode;
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
    let mut lines = vec![
        format!("{:?}: {}", own.view, meaning(mode, own.view)),
        format!("{side} ({})", selector(ingress)),
    ];
    lines.extend(own.doubt.as_ref().map(|doubt| format!("in doubt: {doubt}")));
    let status = facts.report(agent_mode(mode));
    match mode {
        _ if is_left_out(facts.name, object) => lines.push(left_out(mode).to_owned()),
        Mode::Filter if own.view == View::Full => {}
        Mode::Filter => {
            lines.push(pool_line(facts.node, object));
            lines.push(acknowledged(mode, status, own));
        }
        Mode::Beside => {
            lines.push(
                "mode Beside: every node needs an agent, because every kube-proxy skips the Services"
                    .to_owned(),
            );
            lines.push(acknowledged(mode, status, own));
            lines.extend(view_of(status, own).map(serves));
        }
    }
    lines
}

fn meaning(mode: Mode, view: View) -> &'static str {
    match (mode, view) {
        (Mode::Filter, View::Full) => "the node sees all addresses of the Services",
        (Mode::Filter, View::ClusterOnly) => "the node does not see the external addresses of the Services",
        (Mode::Filter, View::Hidden) => {
            "the node does not see the Services at all, not even their ClusterIPs"
        }
        (Mode::Beside, View::Full) => "the agent serves all addresses of the Services",
        (Mode::Beside, View::ClusterOnly) => "the agent serves the Services without their external addresses",
        (Mode::Beside, View::Hidden) => {
            "the agent serves no address of the Services, not even their ClusterIPs"
        }
    }
}

/// Whether the operator gives the node no agent.
pub(super) fn is_left_out(node: &str, object: &IngressSourcePreserve) -> bool {
    let left_out = object.status.as_ref().and_then(|status| status.left_out.as_ref());
    left_out.is_some_and(|left_out| left_out.nodes.iter().any(|name| name == node))
}

fn left_out(mode: Mode) -> &'static str {
    match mode {
        Mode::Filter => "left out: the cluster's kube-proxy does not run on this node, so it needs no agent",
        Mode::Beside => "left out: no agent can run on this node, which is a virtual or Windows node",
    }
}

/// The name of the first pool of the object that selects the node.
pub(super) fn pool_of(node: &Node, object: &IngressSourcePreserve) -> Option<String> {
    let pools = object.spec.pools();
    let pool = pools.iter().find(|pool| pool.contains(&node.labels).unwrap_or(false))?;
    Some(pool.name.to_owned())
}

/// The first pool of the object that selects the node, in words.
fn pool_line(node: &Node, object: &IngressSourcePreserve) -> String {
    let pools = object.spec.pools();
    if let Some(pool) = pools.iter().find(|pool| pool.contains(&node.labels).unwrap_or(false)) {
        return format!("in pool {}: its selector matches ({})", pool.name, selector(pool.selector));
    }
    let names: Vec<&str> = pools.iter().map(|pool| pool.name).collect();
    format!("in no pool: no selector of {} matches, so the node gets no agent", names.join(", "))
}

pub(super) fn view_of<'a>(
    status: Option<&'a IngressSourceNodeStatus>,
    own: &ObjectView,
) -> Option<&'a AcknowledgedView> {
    status?.views.iter().find(|view| view.uid == own.uid)
}

fn acknowledged(mode: Mode, status: Option<&IngressSourceNodeStatus>, own: &ObjectView) -> String {
    if status.is_none() {
        return "acknowledged: nothing, no agent reports".to_owned();
    }
    let Some(view) = view_of(status, own) else { return "acknowledged: nothing of this object".to_owned() };
    let received = match (mode, view.received) {
        (Mode::Filter, true) => "listed by kube-proxy",
        (Mode::Filter, false) => "not listed by kube-proxy yet",
        (Mode::Beside, true) => "the agent has the view",
        (Mode::Beside, false) => "the agent does not have the view yet",
    };
    let programmed = match (mode, view.programmed) {
        (Mode::Filter, Some(true)) => "programmed in the kernel",
        (Mode::Filter, Some(false)) => "not programmed in the kernel yet",
        (Mode::Beside, Some(true)) => "committed to the kernel",
        (Mode::Beside, Some(false)) => "not committed to the kernel yet",
        (_, None) => "the kernel's rules cannot be read",
    };
    format!(
        "acknowledged: {:?} at generation {} (current: {}), {received}, {programmed}",
        view.view, view.generation, own.generation
    )
}

/// Mode Beside: the Services that the agent has in its tables.
fn serves(view: &AcknowledgedView) -> String {
    match view.services.as_slice() {
        [] => "serves: no Service of this object yet".to_owned(),
        services => format!("serves: {}", few(services)),
    }
}
