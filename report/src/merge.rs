//! Nodes that behave alike become one path, so that a cluster of 500 nodes has as many paths as it
//! has kinds of nodes.
//!
//! Two paths are alike if everything but names and addresses is equal: the kinds of their ends, and
//! in each stage the outcome and, hop by hop, the kind of place, the actor and which address it
//! changes. Two nodes are alike if they have the same pool, role and readiness, and if all paths
//! from and to them are alike. The first path stays as the example.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Debug;

use crate::model::{Hop, Journey, Node, Path, WayKind};

#[cfg(test)]
mod tests;

/// Merges paths that are alike. The order of the first ones is kept. Each resulting path has all
/// nodes of a kind, or none of them.
pub fn merge(nodes: &[Node], paths: Vec<Path>) -> Vec<Path> {
    let classes = classes(nodes, &paths);
    let mut merged: Vec<Path> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for path in paths {
        let of = |names: &[String]| {
            let mut found: Vec<_> =
                names.iter().filter_map(|name| classes.get(name.as_str())).copied().collect();
            found.sort_unstable();
            found.dedup();
            found
        };
        let likeness = format!("{:?}", (of(&path.from.nodes), of(&path.to.nodes), likeness(&path)));
        match known.entry(likeness) {
            Entry::Occupied(place) => {
                if let Some(first) = merged.get_mut(*place.get()) {
                    first.from.nodes.extend(path.from.nodes);
                    first.to.nodes.extend(path.to.nodes);
                }
            }
            Entry::Vacant(place) => {
                place.insert(merged.len());
                merged.push(path);
            }
        }
    }
    let places: BTreeMap<&str, usize> =
        nodes.iter().enumerate().map(|(place, node)| (node.name.as_str(), place)).collect();
    for path in &mut merged {
        for names in [&mut path.from.nodes, &mut path.to.nodes] {
            names.sort_by_key(|name| places.get(name.as_str()));
            names.dedup();
        }
    }
    merged
}

/// The kind of each node, as a number.
fn classes<'a>(nodes: &'a [Node], paths: &[Path]) -> BTreeMap<&'a str, usize> {
    let mut behaviour: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for path in paths {
        let likeness = likeness(path);
        for (end, names) in [("from", &path.from.nodes), ("to", &path.to.nodes)] {
            for name in names {
                behaviour.entry(name).or_default().push(format!("{end} {likeness}"));
            }
        }
    }
    for lines in behaviour.values_mut() {
        lines.sort_unstable();
        lines.dedup();
    }
    let mut numbers = BTreeMap::new();
    let class = |node: &'a Node| {
        let key = (&node.pool, node.role, node.ready, behaviour.get(node.name.as_str()));
        let next = numbers.len();
        (node.name.as_str(), *numbers.entry(key).or_insert(next))
    };
    nodes.iter().map(class).collect()
}

/// Text that is equal for paths that are alike, whatever their nodes.
fn likeness(path: &Path) -> String {
    // A NodePort has another address on each node. Other addresses tell paths apart.
    let address = match path.to.kind {
        WayKind::NodePort if !path.to.nodes.is_empty() => {
            path.to.address.rsplit_once(':').map_or("", |(_, port)| port)
        }
        _ => path.to.address.as_str(),
    };
    let outside = if path.from.nodes.is_empty() { path.from.address.as_str() } else { "" };
    let journeys: Vec<_> = path.journeys.iter().map(journey).collect();
    format!("{:?}", (&path.service, path.from.kind, outside, path.to.kind, address, journeys))
}

fn journey(journey: &Journey) -> impl Debug {
    let hops: Vec<_> = journey.hops.iter().map(hop).collect();
    (journey.outcome, journey.arrives.is_some(), hops)
}

fn hop(hop: &Hop) -> impl Debug {
    let place = hop.place.split(' ').next().unwrap_or_default();
    let changes = (hop.before.source != hop.after.source, hop.before.destination != hop.after.destination);
    (place, hop.actor.as_str(), changes, hop.assumed)
}
