//! The constant table: every chain and rule.
//!
//! The number of chains and rules depends on how many different numbers of endpoints and affinity
//! timeouts occur, and on nothing else. The chains, by question:
//!
//! | question | chains |
//! |---|---|
//! | may this client use the load balancer? | `guard` |
//! | is the destination one of ours, and which set of endpoints does this client get? | `services`, `external` |
//! | which endpoint? | `pick`, `recall`, `choose`, `choose-N` |
//! | is the source masqueraded, is the choice remembered? | `finish`, `arrive`, `remember` |
//! | is there no endpoint to redirect to? | `unserved` |

mod build;
mod filter;
mod finish;
mod services;
mod sets;

use std::collections::BTreeSet;

use crate::{
    layout,
    model::{LocalPods, Node},
    nft::{Chain, Data, Element, Family, Handle, Match, Name, Table, Value, Verdict},
};

/// The facts that the rules of one family depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The name of the table.
    pub table: Name,
    /// The family.
    pub family: Family,
    /// How far the chains are ahead of the standard priorities of destination NAT, source NAT and
    /// filtering, so that kube-proxy finds the work done.
    pub ahead: i32,
    /// The largest number of remembered clients.
    pub remembered_clients: u32,
}

/// Numbers of endpoints and affinity timeouts that occur.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provision {
    /// The numbers of endpoints.
    pub counts: BTreeSet<u16>,
    /// The timeouts, in seconds.
    pub timeouts: BTreeSet<u32>,
}

/// Returns the table for a node.
pub fn table(settings: &Settings, node: &Node, provision: &Provision) -> Table {
    let family = settings.family;
    let local = LocalSource::of(node, family);
    let mut sets = sets::constant(settings);
    sets.extend(provision.timeouts.iter().map(|timeout| sets::remembered(*timeout)));

    let mut chains = filter::guard(settings);
    chains.extend(services::chains(settings, &local));
    chains.extend(provision.counts.iter().map(|count| services::choose_among(*count)));
    chains.extend(finish::chains(settings, &local, node.masquerade_all));
    chains.push(Chain {
        name: finish::AFFINITY_UPDATE,
        base: None,
        rules: provision.timeouts.iter().map(|timeout| finish::update(*timeout)).collect(),
    });
    chains.extend(filter::unserved(settings));
    Table { family, name: settings.table.clone(), sets, chains }
}

/// Returns the elements that belong to the rules and not to a Service.
pub fn elements(settings: &Settings, node: &Node, provision: &Provision) -> Vec<Element> {
    let addresses = node.accepting(settings.family).into_iter().map(|address| Element {
        set: layout::NODE_ADDRESSES,
        key: vec![Value::Address(address)],
        last: None,
        data: Data::None,
    });
    addresses.chain(provision.counts.iter().map(|count| dispatch(*count))).collect()
}

/// The element that leads to the chain of a number of endpoints.
pub(crate) fn dispatch(count: u16) -> Element {
    Element {
        set: layout::COUNTS,
        key: vec![Value::Handle(layout::sized(Handle::NONE, count))],
        last: None,
        data: Data::Verdict(Verdict::Goto(layout::choose_among(count))),
    }
}

pub(crate) use finish::{AFFINITY_UPDATE, update};
pub(crate) use services::choose_among;
pub(crate) use sets::remembered;

/// How the rules recognize a pod of this node.
pub(crate) struct LocalSource(Option<Match>);

impl LocalSource {
    fn of(node: &Node, family: Family) -> Self {
        Self(match &node.local_pods {
            LocalPods::Unknown => None,
            LocalPods::Sources(ranges) => ranges
                .iter()
                .find(|range| Family::of(range.addr()) == family)
                .map(|range| Match::Source { prefix: range.trunc(), negated: false }),
            LocalPods::Interface(pattern) => {
                Some(Match::Interface { pattern: pattern.clone(), negated: false })
            }
        })
    }

    /// The match of a local pod, if one can be recognized.
    fn matches(&self) -> Option<Match> {
        self.0.clone()
    }

    /// The match of anyone else.
    fn matches_others(&self) -> Option<Match> {
        self.0.clone().map(|local| match local {
            Match::Source { prefix, .. } => Match::Source { prefix, negated: true },
            Match::Interface { pattern, .. } => Match::Interface { pattern, negated: true },
            other => other,
        })
    }
}

/// The number of rules of a table.
pub fn count_rules(table: &Table) -> usize {
    table.chains.iter().map(|chain| chain.rules.len()).sum()
}

#[cfg(test)]
mod tests;
