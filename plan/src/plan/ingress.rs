//! Which nodes show an object's Services in full: the ingress nodes that its selector names, and, while these do not serve a Service that was
//! changed, the nodes that still do. So the last way in is never closed by a label that is taken away, a node that registers anew or a
//! selector that matches nothing.

use std::rc::Rc;

use isp_api::view::View;

use super::snapshot::Object;
use crate::cluster::{Cluster, Key, Node};

/// Keeps the nodes that are the last to serve a Service of the object.
pub(super) fn keep(cluster: &Cluster, nodes: &[(&str, &Node)], object: &mut Object<'_>) {
    if object.deletion.is_some() {
        // On the way back nothing is hidden that was not hidden before.
        object.kept = places(nodes, |place, (name, _)| {
            !object.selected[place] && object.written.lists_ingress_node(name)
        });
    } else {
        let lost = object
            .touched
            .iter()
            .filter(|key| !serves(cluster, nodes, object, key, |place| object.selected[place]));
        // None of them is selected, or the Service would not be lost.
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

/// Whether an ingress node of the object serves the Service: it has a ready endpoint and shows the Service in full now.
pub(super) fn has_way_in(
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

/// The nodes with a ready endpoint of the Service that show it in full now: no agent runs there, or one that says so.
fn serving(
    cluster: &Cluster,
    nodes: &[(&str, &Node)],
    object: &Object<'_>,
    service: &Key,
) -> impl Iterator<Item = usize> {
    let shows = |place: &usize| {
        let (name, node) = nodes[*place];
        let said = || cluster.reports.get(name)?.acknowledged.get(object.uid);
        node.pool.is_none() || said().is_some_and(|said| said.view == View::Full)
    };
    let ready = cluster.ready_endpoints(service).into_iter().filter(|(_, count)| *count > 0);
    let places = ready.filter_map(|(name, _)| nodes.binary_search_by_key(&name, |(name, _)| *name).ok());
    places.filter(shows).collect::<Vec<_>>().into_iter()
}
