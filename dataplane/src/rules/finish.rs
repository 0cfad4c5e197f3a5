//! After redirection: the choice is remembered, and the source masqueraded where the reply would
//! not come back otherwise. The first packet of the connection is known by its original
//! destination, so nothing has to be marked on the way.

use crate::{
    layout,
    nft::{
        Chain, ChainKind,
        Field::{Daddr, Dport, L4Proto, OriginalDaddr, OriginalDport, Priority, Saddr},
        Handle, Hook, Match, Name, NewPriority, Protocol, Rule, Statement,
    },
};

use super::{
    LocalSource, Settings,
    build::{base, chain, goto, is_in, jump, lookup, matches, rule, set_from},
};

/// The priority of source NAT.
const SRCNAT: i32 = 100;

pub(crate) const AFFINITY_UPDATE: Name = Name::constant("affinity-update");
/// Packets that leave to an endpoint.
const FINISH: Name = Name::constant("finish");
/// Packets to an endpoint on the host network of this node. They are never masqueraded.
const ARRIVE: Name = Name::constant("arrive");
const ARRIVED: Name = Name::constant("arrived");
const REMEMBER: Name = Name::constant("remember");
const FINISH_INTERNAL: Name = Name::constant("finish-internal");
const FINISH_EXTERNAL: Name = Name::constant("finish-external");
const FINISH_EXTERNAL_LOCAL: Name = Name::constant("finish-external-local");
const HAIRPINS: Name = Name::constant("hairpins");
const MASQUERADING: Name = Name::constant("masquerading");

const NOT_LOCAL: Handle = Handle(!layout::LOCAL.0);

pub(super) fn chains(settings: &Settings, local: &LocalSource, masquerade_all: bool) -> Vec<Chain> {
    let priority = SRCNAT - settings.ahead;
    vec![
        base("nat-postrouting", ChainKind::Nat, Hook::Postrouting, priority, redirected(&FINISH)),
        base("nat-input", ChainKind::Nat, Hook::Input, priority, redirected(&ARRIVE)),
        chain(FINISH, by_original(&FINISH_INTERNAL, &FINISH_EXTERNAL)),
        chain(ARRIVE, by_original(&ARRIVED, &ARRIVED)),
        chain(ARRIVED, vec![rule([jump(&REMEMBER)]), rule([Statement::SetPriority(NewPriority::None)])]),
        chain(FINISH_INTERNAL, internal(local, masquerade_all)),
        chain(FINISH_EXTERNAL, external()),
        chain(FINISH_EXTERNAL_LOCAL, external_local(local)),
        chain(HAIRPINS, hairpins()),
        chain(MASQUERADING, vec![rule([Statement::SetPriority(NewPriority::None), Statement::Masquerade])]),
        chain(REMEMBER, remember()),
    ]
}

fn redirected(then: &Name) -> Vec<Rule> {
    vec![rule([matches(Match::Redirected), goto(then)])]
}

/// A rule for each protocol and each kind of frontend: the handle by the original destination.
/// `nft` reads `ct original proto-dst` only after a match of one protocol.
fn by_original(internal: &Name, external: &Name) -> Vec<Rule> {
    let original = [OriginalDaddr, L4Proto, OriginalDport];
    let each = |then: &dyn Fn(Statement) -> Rule| {
        Protocol::ALL.map(|protocol| then(matches(Match::Protocol(protocol))))
    };
    let mut rules = Vec::new();
    rules
        .extend(each(&|protocol| rule([protocol, set_from(original, &layout::CLUSTER_IPS), goto(internal)])));
    rules.extend(each(&|protocol| {
        rule([protocol, set_from(original, &layout::EXTERNAL_IPS), goto(external)])
    }));
    rules.extend(each(&|protocol| {
        rule([
            protocol,
            is_in([OriginalDaddr], &layout::NODE_ADDRESSES),
            set_from([L4Proto, OriginalDport], &layout::NODE_PORTS),
            goto(external),
        ])
    }));
    rules
}

fn internal(local: &LocalSource, masquerade_all: bool) -> Vec<Rule> {
    let mut rules = vec![rule([jump(&REMEMBER)])];
    if masquerade_all {
        rules.push(rule([goto(&MASQUERADING)]).saying("masqueradeAll"));
        return rules;
    }
    if let Some(others) = local.matches_others() {
        rules.push(rule([matches(others), goto(&MASQUERADING)]).saying("not a pod of this node"));
    }
    rules.push(rule([goto(&HAIRPINS)]));
    rules
}

fn external() -> Vec<Rule> {
    vec![
        rule([matches(Match::PriorityBits { mask: layout::LOCAL, set: true }), goto(&FINISH_EXTERNAL_LOCAL)])
            .saying("externalTrafficPolicy Local"),
        rule([jump(&REMEMBER)]),
        rule([goto(&MASQUERADING)]),
    ]
}

fn external_local(local: &LocalSource) -> Vec<Rule> {
    let mut rules = vec![rule([jump(&REMEMBER)])];
    if let Some(pod) = local.matches() {
        rules.push(rule([matches(pod), goto(&HAIRPINS)]).saying("a pod of this node"));
    }
    rules.push(rule([matches(Match::SourceIsLocal), goto(&MASQUERADING)]).saying("this node itself"));
    rules.push(rule([goto(&HAIRPINS)]).saying("the source is kept"));
    rules
}

fn hairpins() -> Vec<Rule> {
    vec![
        rule([is_in([Priority, Saddr, Daddr, Dport], &layout::HAIRPIN), goto(&MASQUERADING)])
            .saying("an endpoint reaches itself"),
        rule([Statement::SetPriority(NewPriority::None)]),
    ]
}

/// Remembers the endpoint for both sets that have it, and leaves the handle of the cluster set.
fn remember() -> Vec<Rule> {
    vec![
        rule([Statement::SetPriority(NewPriority::Or(layout::LOCAL)), jump(&AFFINITY_UPDATE)]),
        rule([Statement::SetPriority(NewPriority::And(NOT_LOCAL)), jump(&AFFINITY_UPDATE)]),
    ]
}

/// The rule that remembers clients for so many seconds. An endpoint that is gone is not remembered
/// again, so its elements can be deleted after it.
pub(crate) fn update(timeout: u32) -> Rule {
    rule([
        is_in([Priority, Daddr, Dport], &layout::remembered(timeout)),
        Statement::Update {
            lookup: lookup([Saddr, Priority], &layout::AFFINITY),
            data: vec![Daddr, Dport],
            timeout,
        },
    ])
}
