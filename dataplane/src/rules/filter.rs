//! Packets that are not let through: source ranges before redirection; afterwards, destinations of
//! ours that were not redirected because there is no endpoint.

use crate::{
    layout,
    nft::{
        Chain, ChainKind,
        Field::{Daddr, Dport, L4Proto, Priority, Saddr},
        Handle, Hook, Match, Name, NewPriority, Rule, Statement,
    },
};

use super::{Settings, services::DSTNAT};

use super::build::{
    DESTINATION, NODE_DESTINATION, base, chain, drop, goto, is_in, is_not_in, jump, matches, rule, set_from,
};

/// The priority of filtering. kube-proxy drops packets to ClusterIPs that it does not know there.
const FILTER: i32 = 0;
/// How far ahead of our own redirection source ranges are checked.
const AHEAD_OF_REDIRECTION: i32 = 5;

const GUARD: Name = Name::constant("guard");
/// Packets to the node itself.
const UNSERVED_INPUT: Name = Name::constant("unserved-input");
/// Packets that leave the node.
const UNSERVED_ONWARD: Name = Name::constant("unserved-onward");
const UNSERVED: Name = Name::constant("unserved");
const UNSERVED_HANDLE: Name = Name::constant("unserved-handle");
const UNSERVED_LOCAL: Name = Name::constant("unserved-local");
const OTHER_PORTS: Name = Name::constant("other-ports");
const SERVED: Name = Name::constant("served");

/// `loadBalancerSourceRanges`.
pub(super) fn guard(settings: &Settings) -> Vec<Chain> {
    let priority = DSTNAT - settings.ahead - AHEAD_OF_REDIRECTION;
    let check = || vec![rule([matches(Match::NewConnection), jump(&GUARD)])];
    vec![
        base("guard-prerouting", ChainKind::Filter, Hook::Prerouting, priority, check()),
        base("guard-output", ChainKind::Filter, Hook::Output, priority, check()),
        chain(
            GUARD,
            vec![rule([
                is_in(DESTINATION, &layout::GUARDED),
                is_not_in([Daddr, L4Proto, Dport, Saddr], &layout::ALLOWED),
                drop(),
            ])],
        ),
    ]
}

/// Destinations of ours without an endpoint for this client. Packets that were redirected, which
/// are nearly all, skip the lookups: their endpoint can have the address of a frontend.
pub(super) fn unserved(settings: &Settings) -> Vec<Chain> {
    let priority = FILTER - settings.ahead;
    let filter = |name, hook, then: &Name| {
        let check = vec![rule([matches(Match::NewConnection), goto(then)])];
        base(name, ChainKind::Filter, hook, priority, check)
    };
    vec![
        filter("filter-input", Hook::Input, &UNSERVED_INPUT),
        filter("filter-forward", Hook::Forward, &UNSERVED_ONWARD),
        filter("filter-output", Hook::Output, &UNSERVED_ONWARD),
        chain(UNSERVED_INPUT, input()),
        chain(UNSERVED_ONWARD, onward()),
        chain(
            UNSERVED,
            vec![
                rule([set_from(DESTINATION, &layout::CLUSTER_IPS), goto(&UNSERVED_HANDLE)]),
                rule([set_from(DESTINATION, &layout::EXTERNAL_IPS), goto(&UNSERVED_HANDLE)]),
            ],
        ),
        chain(UNSERVED_HANDLE, unserved_handle()),
        chain(UNSERVED_LOCAL, unserved_local()),
        chain(
            OTHER_PORTS,
            vec![
                rule([is_in([Daddr], &layout::CLUSTER_ADDRESSES), Statement::Reject])
                    .saying("a port that the Service does not have"),
            ],
        ),
        chain(SERVED, vec![rule([Statement::SetPriority(NewPriority::None)])]),
    ]
}

fn input() -> Vec<Rule> {
    vec![
        rule([matches(Match::Redirected), goto(&SERVED)]),
        rule([jump(&UNSERVED)]),
        rule([
            is_in([Daddr], &layout::NODE_ADDRESSES),
            set_from(NODE_DESTINATION, &layout::NODE_PORTS),
            goto(&UNSERVED_HANDLE),
        ]),
    ]
}

fn onward() -> Vec<Rule> {
    vec![
        rule([matches(Match::Redirected), goto(&OTHER_PORTS)]),
        rule([jump(&UNSERVED)]),
        rule([goto(&OTHER_PORTS)]),
    ]
}

fn unserved_handle() -> Vec<Rule> {
    vec![
        rule([set_from([Priority], &layout::SIZES), goto(&SERVED)])
            .saying("somebody else has decided where it goes"),
        rule([matches(Match::PriorityBits { mask: layout::LOCAL, set: true }), goto(&UNSERVED_LOCAL)]),
        rule([Statement::Reject]).saying("no endpoint anywhere"),
    ]
}

fn unserved_local() -> Vec<Rule> {
    vec![
        rule([Statement::SetPriority(NewPriority::And(Handle(!layout::LOCAL.0)))]),
        rule([set_from([Priority], &layout::SIZES), drop()]).saying("endpoints, but none on this node"),
        rule([Statement::Reject]).saying("no endpoint anywhere"),
    ]
}
