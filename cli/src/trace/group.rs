//! Ways that differ only in the names and addresses of nodes and endpoints are one group, so that
//! a large cluster gives a short report. Pure.

use std::collections::BTreeMap;

use isp_paths::{Outcome, Path, Place};

/// Ways of the same shape: the first of them, and the others.
pub(super) struct Group<'a> {
    pub(super) first: &'a Path,
    pub(super) others: Vec<&'a Path>,
}

/// Groups the ways, in the order of their first one.
pub(super) fn groups(paths: &[Path]) -> Vec<Group<'_>> {
    let mut places: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    let mut groups: Vec<Group<'_>> = Vec::new();
    for path in paths {
        let place = *places.entry(shape(path)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.others.push(path),
            None => groups.push(Group { first: path, others: Vec::new() }),
        }
    }
    groups
}

/// Names and addresses by the order in which they first occur.
#[derive(Default)]
struct Names(BTreeMap<String, usize>);

impl Names {
    fn number(&mut self, name: &str) -> String {
        let next = self.0.len();
        format!("#{}", self.0.entry(name.to_owned()).or_insert(next))
    }
}

/// The shape of a way: who acts and what changes, without names.
fn shape(path: &Path) -> Vec<String> {
    let mut names = Names::default();
    let mut shape = Vec::new();
    for hop in &path.hops {
        let place = match &hop.place {
            Place::Outside => "outside".to_owned(),
            Place::Node(node) => names.number(node),
            Place::Pod(pod) => names.number(&pod.to_string()),
        };
        let mut addresses = |flow: &isp_paths::Flow| {
            let source = names.number(&flow.source.address.to_string());
            format!("{source} {}", names.number(&flow.destination.to_string()))
        };
        let (before, after) = (addresses(&hop.before), addresses(&hop.after));
        shape.push(format!("{place} {} {} {before} {after}", hop.actor, hop.assumed));
    }
    shape.push(match &path.outcome {
        Outcome::Delivered(delivery) => {
            let node = delivery.node.as_deref().map(|node| names.number(node)).unwrap_or_default();
            let seen =
                delivery.seen().map(|seen| names.number(&seen.address.to_string())).unwrap_or_default();
            format!("delivered {node} {seen} {} {}", delivery.kept, delivery.gateway)
        }
        Outcome::Leaves { .. } => "leaves".to_owned(),
        // Their reasons differ more than in names.
        Outcome::Refused { reason } => format!("refused {}", without_names(reason, path)),
        Outcome::Dropped { reason } => format!("dropped {}", without_names(reason, path)),
        Outcome::Unclear { reason } => format!("unclear {}", without_names(reason, path)),
    });
    shape
}

fn without_names(reason: &str, path: &Path) -> String {
    path.hops.iter().fold(reason.to_owned(), |reason, hop| match &hop.place {
        Place::Node(node) => reason.replace(node.as_str(), "#"),
        _ => reason,
    })
}
