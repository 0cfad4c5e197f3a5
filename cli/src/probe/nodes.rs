//! The nodes of a probe: those with the target, and those that send. Pure.

use std::collections::BTreeSet;
use std::str::FromStr;

#[cfg(test)]
mod tests;

/// So many nodes with endpoints get a target and clients.
const TARGETS: usize = 3;
/// So many other nodes get clients.
const OTHERS: usize = 2;

/// The user's choice: names, or a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NodeChoice {
    Named(Vec<String>),
    Number(usize),
}

impl FromStr for NodeChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(number) = text.parse() {
            return if number == 0 {
                Err("expected at least one node".to_owned())
            } else {
                Ok(Self::Number(number))
            };
        }
        let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
        if names.iter().any(String::is_empty) {
            return Err("expected names of nodes with commas between them, or a number".to_owned());
        }
        Ok(Self::Named(names))
    }
}

/// A node of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts")]
pub(crate) struct Candidate {
    pub(crate) name: String,
    pub(crate) ready: bool,
    /// Whether an object names it as an ingress node.
    pub(crate) ingress: bool,
    /// Whether the user's Service has a ready endpoint there.
    pub(crate) has_endpoint: bool,
    /// Windows nodes cannot run our image.
    pub(crate) linux: bool,
}

impl Candidate {
    fn can_run(&self) -> bool {
        self.ready && self.linux
    }
}

/// The nodes of a probe, each list sorted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// They run the target.
    pub(crate) targets: Vec<String>,
    /// They run clients, and are destinations with their NodePort.
    pub(crate) clients: Vec<String>,
}

/// Why there is no choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoChoice {
    Unknown(String),
    NotReady(String),
    /// No node has a ready endpoint.
    NoEndpoints,
}

/// Chooses nodes. The same cluster gives the same choice.
///
/// The target is on nodes with endpoints, ingress nodes first, so that the canary has local
/// endpoints where the user's Service has some. Other nodes are those without an endpoint,
/// non-ingress nodes first, because they are the ones that intercept.
pub(crate) fn choose(candidates: &[Candidate], asked: Option<&NodeChoice>) -> Result<Chosen, NoChoice> {
    let mut usable: Vec<&Candidate> = candidates.iter().filter(|node| node.can_run()).collect();
    usable.sort_by_key(|node| (!node.ingress, &node.name));
    let with: Vec<&Candidate> = usable.iter().copied().filter(|node| node.has_endpoint).collect();
    if with.is_empty() {
        return Err(NoChoice::NoEndpoints);
    }
    let mut without: Vec<&Candidate> = usable.iter().copied().filter(|node| !node.has_endpoint).collect();
    without.sort_by_key(|node| (node.ingress, &node.name));
    let names = |nodes: &[&Candidate]| nodes.iter().map(|node| node.name.clone()).collect::<BTreeSet<_>>();
    let (targets, clients) = match asked {
        Some(NodeChoice::Named(asked)) => {
            for name in asked {
                match candidates.iter().find(|node| node.name == *name) {
                    None => return Err(NoChoice::Unknown(name.clone())),
                    Some(node) if !node.can_run() => return Err(NoChoice::NotReady(name.clone())),
                    Some(_) => {}
                }
            }
            let asked: BTreeSet<String> = asked.iter().cloned().collect();
            // A node that sends and has an endpoint must have a target as well.
            let mut targets: BTreeSet<String> = names(&with).intersection(&asked).cloned().collect();
            if targets.is_empty() {
                targets.extend(names(&with[..1]));
            }
            (targets, asked)
        }
        Some(NodeChoice::Number(number)) => {
            // At least one of each, if there are two.
            let others = (number / 2).max(number.saturating_sub(with.len())).min(without.len());
            let targets = names(&with[..number.saturating_sub(others).clamp(1, with.len())]);
            let clients = targets.union(&names(&without[..others])).cloned().collect();
            (targets, clients)
        }
        None => {
            let targets = names(&with[..TARGETS.min(with.len())]);
            let clients = targets.union(&names(&without[..OTHERS.min(without.len())])).cloned().collect();
            (targets, clients)
        }
    };
    Ok(Chosen { targets: targets.into_iter().collect(), clients: clients.into_iter().collect() })
}
