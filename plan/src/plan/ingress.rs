//! Which nodes show an object's Services in full: the selected ingress nodes and, while none of
//! them serves a changed Service, the nodes that still do. A removed label, a node that registers
//! again or a selector that matches nothing therefore never cuts off the last serving node.

use std::rc::Rc;

use isp_api::node::AgentMode;
use isp_api::view::View;

use super::snapshot::Object;
use crate::cluster::{Cluster, Key, Node, Service};

/// Determines `kept`: the unselected nodes that must keep showing the Services in full.
pub(super) fn keep(cluster: &Cluster, nodes: &[(&str, &Node)], object: &mut Object<'_>) {
    if object.deletion.is_some() {
        // During deletion, ingress nodes listed in the status stay ingress nodes, so nothing more
        // is hidden.
        object.kept = places(nodes, |place, (name, _)| {
            !object.selected[place] && object.written.lists_ingress_node(name)
        });
    } else {
        let lost = object
            .touched
            .iter()
            .filter(|key| !serves(cluster, nodes, object, key, |place| object.selected[place]));
        // None of these is selected, or the Service would not be in `lost`.
        let mut kept: Vec<usize> = lost.flat_map(|key| serving(cluster, nodes, object, key)).collect();
        kept.sort_unstable();
        kept.dedup();
        object.kept = kept;
    }
    if !object.kept.is_empty() {
        let mut ingress = Vec::clone(&object.selected);
        for place in &object.kept {
            ingress[*place] = true;
        }
        object.ingress = Rc::new(ingress);
    }
}

fn places(nodes: &[(&str, &Node)], is: impl Fn(usize, &(&str, &Node)) -> bool) -> Vec<usize> {
    nodes.iter().enumerate().filter(|(place, node)| is(*place, node)).map(|(place, _)| place).collect()
}

/// Whether an ingress node of the object serves the Service: it has a ready endpoint and currently
/// shows the Service in full.
pub(super) fn served_by_ingress(
    cluster: &Cluster,
    nodes: &[(&str, &Node)],
    object: &Object<'_>,
    service: &Key,
) -> bool {
    serves(cluster, nodes, object, service, |place| object.ingress[place])
}

fn serves(
    cluster: &Cluster,
    nodes: &[(&str, &Node)],
    object: &Object<'_>,
    service: &Key,
    among: impl Fn(usize) -> bool,
) -> bool {
    serving(cluster, nodes, object, service).any(among)
}

/// The nodes with a ready endpoint that currently show the Service in full: they have no agent, or
/// their agent reports the full view. If kube-proxies skip the Service, only agents of mode Beside
/// count.
fn serving(
    cluster: &Cluster,
    nodes: &[(&str, &Node)],
    object: &Object<'_>,
    service: &Key,
) -> impl Iterator<Item = usize> {
    let taken_over = cluster.services.get(service).is_some_and(Service::is_taken_over);
    let shows = |place: &usize| {
        let (name, node) = nodes[*place];
        let says = |mode| {
            let said = cluster.report(name, mode).and_then(|report| report.acknowledged.get(object.uid));
            said.is_some_and(|said| said.view == View::Full)
        };
        if taken_over { says(AgentMode::Beside) } else { node.pool.is_none() || says(AgentMode::Filter) }
    };
    let ready = cluster.ready_endpoints(service).into_iter().filter(|(_, count)| *count > 0);
    let places = ready.filter_map(|(name, _)| nodes.binary_search_by_key(&name, |(name, _)| *name).ok());
    places.filter(shows).collect::<Vec<_>>().into_iter()
}
