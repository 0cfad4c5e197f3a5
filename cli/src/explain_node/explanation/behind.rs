//! Whatever has not followed yet, of the views that the node should have.

use isp_api::IngressSourcePreserve;
use isp_api::node::{AgentMode, IngressSourceNodeStatus};
use isp_api::preserve::Mode;
use isp_api::view::ObjectView;
use isp_plan::cluster::Node;
use kube::ResourceExt;

use super::object::is_left_out;
use super::{Facts, agent_mode};
use crate::status::{Wanted, unserved};

pub(super) fn behind(facts: &Facts<'_>, wanted: &[ObjectView]) -> Vec<String> {
    let object_of = |own: &ObjectView| facts.objects.iter().find(|object| object.name_any() == own.object);
    let concerned: Vec<(&IngressSourcePreserve, &ObjectView)> = wanted
        .iter()
        .filter_map(|own| Some((object_of(own)?, own)))
        .filter(|(object, _)| !is_left_out(facts.name, object))
        .collect();
    let needs = |mode: Mode| {
        let of_mode = concerned.iter().filter(move |(object, _)| object.spec.mode == mode);
        of_mode.filter(|(object, own)| wanted_of(object, own).is_owed()).map(|(object, _)| *object)
    };
    let mut lines = Vec::new();
    let (pooled, unpooled): (Vec<_>, Vec<_>) =
        needs(Mode::Filter).partition(|object| is_in_pool(facts.node, object));
    for object in unpooled {
        lines.push(format!("{}: no pool selects the node, so it gets no agent", object.name_any()));
    }
    lines.extend(filter_agent(facts, !pooled.is_empty()));
    lines.extend(beside_agent(facts, needs(Mode::Beside).next().is_some()));
    for own in wanted {
        let Some(object) = object_of(own) else { continue };
        if let Some(status) = facts.report(agent_mode(object.spec.mode)) {
            lines.extend(lag(object, own, status).map(|lag| format!("{}: {lag}", own.object)));
        }
    }
    let own = facts.pods.iter().filter(|(_, pod)| pod.role.is_none());
    if facts.node.pool.is_some() && own.count() > 0 {
        lines.push("the cluster's own kube-proxy still runs on the node and writes rules, too".to_owned());
    }
    lines
}

fn wanted_of(object: &IngressSourcePreserve, own: &ObjectView) -> Wanted {
    Wanted { mode: object.spec.mode, view: own.view, generation: own.generation }
}

/// Whether a pool of the object selects the node.
fn is_in_pool(node: &Node, object: &IngressSourcePreserve) -> bool {
    object.spec.pools().iter().any(|pool| pool.contains(&node.labels).unwrap_or(false))
}

fn filter_agent(facts: &Facts<'_>, needed: bool) -> Option<String> {
    let line = match facts.report(AgentMode::Filter) {
        None if needed && facts.node.pool.is_none() => "the node has no agent yet",
        None if needed => "the agent has not reported yet",
        Some(status) if !status.active => "kube-proxy is not connected to the agent",
        _ => return None,
    };
    Some(line.to_owned())
}

fn beside_agent(facts: &Facts<'_>, needed: bool) -> Option<String> {
    let runs = facts.beside_pods().next().is_some();
    let line = match facts.report(AgentMode::Beside) {
        _ if needed && !runs => "the node has no agent of mode Beside",
        None if needed => "the agent of mode Beside has not reported yet",
        Some(status) if !status.active => "the agent of mode Beside has not programmed the kernel",
        _ => return None,
    };
    Some(line.to_owned())
}

/// What the agent lacks of one object.
fn lag(object: &IngressSourcePreserve, own: &ObjectView, status: &IngressSourceNodeStatus) -> Option<String> {
    let view = status.views.iter().find(|view| view.uid == own.uid);
    let lag = wanted_of(object, own).lag(view);
    lag.or_else(|| unserved(object, view?))
}
