//! Redirection: the destination is looked up, the set of endpoints determined, an endpoint chosen.

use crate::{
    layout,
    nft::{Chain, ChainKind, Field, Handle, Hook, Match, Name, NewPriority, Protocol, Rule, Statement},
};

use super::{
    LocalSource, Settings,
    build::{DESTINATION, NODE_DESTINATION, base, chain, goto, is_in, jump, lookup, matches, rule, set_from},
};

/// The priority of destination NAT.
pub(super) const DSTNAT: i32 = -100;

const SERVICES: Name = Name::constant("services");
const EXTERNAL: Name = Name::constant("external");
const EXTERNAL_CLUSTER: Name = Name::constant("external-cluster");
const PICK: Name = Name::constant("pick");
const RECALL: Name = Name::constant("recall");
const CHOOSE: Name = Name::constant("choose");

pub(super) fn chains(settings: &Settings, local: &LocalSource) -> Vec<Chain> {
    let priority = DSTNAT - settings.ahead;
    vec![
        base("nat-prerouting", ChainKind::Nat, Hook::Prerouting, priority, vec![rule([jump(&SERVICES)])]),
        base("nat-output", ChainKind::Nat, Hook::Output, priority, vec![rule([jump(&SERVICES)])]),
        chain(SERVICES, services()),
        chain(EXTERNAL, external(local)),
        chain(
            EXTERNAL_CLUSTER,
            vec![rule([Statement::SetPriority(NewPriority::And(Handle(!layout::LOCAL.0))), goto(&PICK)])],
        ),
        chain(PICK, pick()),
        chain(RECALL, recall()),
        chain(CHOOSE, vec![rule([Statement::PriorityVerdict { mask: layout::COUNT, map: layout::COUNTS }])]),
    ]
}

fn services() -> Vec<Rule> {
    vec![
        rule([set_from(DESTINATION, &layout::CLUSTER_IPS), goto(&PICK)]),
        rule([set_from(DESTINATION, &layout::EXTERNAL_IPS), goto(&EXTERNAL)]),
        rule([
            is_in([Field::Daddr], &layout::NODE_ADDRESSES),
            set_from(NODE_DESTINATION, &layout::NODE_PORTS),
            goto(&EXTERNAL),
        ]),
    ]
}

/// With externalTrafficPolicy Local, clients on this node still get the cluster set.
fn external(local: &LocalSource) -> Vec<Rule> {
    let mut rules = vec![
        rule([matches(Match::PriorityBits { mask: layout::LOCAL, set: false }), goto(&PICK)])
            .saying("externalTrafficPolicy Cluster"),
    ];
    if let Some(pod) = local.matches() {
        rules.push(rule([matches(pod), goto(&EXTERNAL_CLUSTER)]).saying("a pod of this node"));
    }
    rules.push(rule([matches(Match::SourceIsLocal), goto(&EXTERNAL_CLUSTER)]).saying("this node itself"));
    rules.push(rule([goto(&PICK)]));
    rules
}

/// Only clients of a port with session affinity pay for the lookup of their endpoint.
fn pick() -> Vec<Rule> {
    vec![
        rule([is_in([Field::Priority], &layout::STICKY), jump(&RECALL)]),
        rule([set_from([Field::Priority], &layout::SIZES), goto(&CHOOSE)]),
    ]
}

/// The endpoint that the client has already, if it is remembered.
fn recall() -> Vec<Rule> {
    Protocol::ALL
        .into_iter()
        .map(|protocol| {
            rule([
                matches(Match::Protocol(protocol)),
                Statement::Dnat(lookup([Field::Saddr, Field::Priority], &layout::AFFINITY)),
            ])
        })
        .collect()
}

/// The chain that chooses among so many endpoints. `nft` reads a redirection to a port only after a
/// match of one protocol, or of an anonymous set of them, which costs a set for each chain.
pub(crate) fn choose_among(count: u16) -> Chain {
    let mut rules = vec![rule([Statement::SetPriority(NewPriority::And(layout::SET))])];
    rules.extend(Protocol::ALL.into_iter().map(|protocol| {
        rule([
            matches(Match::Protocol(protocol)),
            Statement::Dnat(lookup([Field::Priority, Field::Random(u32::from(count))], &layout::ENDPOINTS)),
        ])
    }));
    chain(layout::choose_among(count), rules)
}
