//! Which numbers of endpoints and which affinity timeouts are in use, and the chains and sets that
//! they need.
//!
//! The chain of a number of endpoints stays until the next start: numbers recur. The set and the
//! rule of a timeout go with the last port that uses it, because nft 1.0.6 lists the rule of an
//! IPv6 table and cannot read it back.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    layout,
    nft::{Chain, Data, Element, Operation, Value},
    rules::{self, Provision},
};

#[derive(Clone, Debug, Default)]
pub(super) struct InUse {
    provision: Provision,
    /// How many elements use a timeout's set.
    remembered: BTreeMap<u32, usize>,
}

/// Steps around those of the elements.
#[derive(Debug, Default)]
pub(super) struct Steps {
    before: Vec<Operation>,
    after: Vec<Operation>,
}

impl Steps {
    pub(super) fn surround(self, mut elements: Vec<Operation>) -> Vec<Operation> {
        let mut all = self.before;
        all.append(&mut elements);
        all.extend(self.after);
        all
    }
}

impl InUse {
    pub(super) fn provision(&self) -> &Provision {
        &self.provision
    }

    /// Takes over the numbers of endpoints that the kernel has chains for.
    pub(super) fn adopt(&mut self, dump: &[Element]) {
        let known = dump.iter().filter(|each| each.set == layout::COUNTS).filter_map(|each| {
            let [Value::Handle(handle)] = each.key.as_slice() else { return None };
            let count = layout::count(*handle);
            (*each == rules::dispatch(count)).then_some(count)
        });
        self.provision.counts.extend(known);
    }

    /// Accounts for a Service's elements before and after a change.
    pub(super) fn change(&mut self, have: &[Element], want: &[Element]) -> Steps {
        let mut steps = Steps::default();
        for count in want.iter().filter_map(count) {
            if self.provision.counts.insert(count) {
                steps.before.extend(for_count(count));
            }
        }
        for timeout in want.iter().filter_map(timeout) {
            *self.remembered.entry(timeout).or_default() += 1;
        }
        for timeout in have.iter().filter_map(timeout) {
            if let Some(users) = self.remembered.get_mut(&timeout) {
                *users = users.saturating_sub(1);
            }
        }
        self.remembered.retain(|_, users| *users > 0);
        let timeouts: BTreeSet<u32> = self.remembered.keys().copied().collect();
        for added in timeouts.difference(&self.provision.timeouts) {
            steps.before.push(Operation::AddSet(rules::remembered(*added)));
            steps
                .before
                .push(Operation::AddRule { chain: rules::AFFINITY_UPDATE, rule: rules::update(*added) });
        }
        let gone: Vec<u32> = self.provision.timeouts.difference(&timeouts).copied().collect();
        if !gone.is_empty() {
            steps.after.push(Operation::FlushChain(rules::AFFINITY_UPDATE));
            steps.after.extend(timeouts.iter().map(|timeout| Operation::AddRule {
                chain: rules::AFFINITY_UPDATE,
                rule: rules::update(*timeout),
            }));
            steps.after.extend(gone.iter().map(|timeout| Operation::DeleteSet(layout::remembered(*timeout))));
        }
        self.provision.timeouts = timeouts;
        steps
    }
}

/// The chain of a number of endpoints, its rules, and the element that leads to it. This element is
/// the only one with a verdict, so only a number that occurs for the first time touches verdicts.
fn for_count(count: u16) -> Vec<Operation> {
    let Chain { name, base, rules } = rules::choose_among(count);
    let rules = rules.into_iter().map(|rule| Operation::AddRule { chain: name.clone(), rule });
    let mut steps: Vec<Operation> = rules.collect();
    steps.insert(0, Operation::AddChain(Chain { name, base, rules: Vec::new() }));
    steps.push(Operation::AddElement(rules::dispatch(count)));
    steps
}

/// The number of endpoints that an element of `sizes` tells.
fn count(element: &Element) -> Option<u16> {
    match &element.data {
        Data::Values(values) if element.set == layout::SIZES => match values.as_slice() {
            [Value::Handle(handle)] => Some(layout::count(*handle)),
            _ => None,
        },
        _ => None,
    }
}

/// The timeout of the set that an element belongs to.
fn timeout(element: &Element) -> Option<u32> {
    layout::remembered_timeout(&element.set)
}
