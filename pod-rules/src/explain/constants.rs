//! The values that rules distinguish, and values that they do not: one packet for each is enough.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::statements;
use crate::decode::PodRules;
use crate::packet::Sender;
use crate::rules::{Field, Match, Statement};

/// A process that no rule mentions, unless a rule mentions this number.
const ORDINARY: u32 = 54_321;

/// The comparisons of a field, in the tables that see packets to this address: mask, first and
/// last.
pub(super) fn of(rules: &PodRules, address: IpAddr, field: Field) -> BTreeSet<(u128, u128, u128)> {
    let tables = rules.ruleset.tables.iter().filter(|table| table.family.sees(address));
    let matches = tables.flat_map(statements).filter_map(|statement| match statement {
        Statement::Match(Match::Number { field: of, mask, ranges, .. }) if *of == field => {
            Some((mask, ranges))
        }
        _ => None,
    });
    matches.flat_map(|(mask, ranges)| ranges.iter().map(|(first, last)| (*mask, *first, *last))).collect()
}

/// The single numbers that a field is compared with.
pub(super) fn numbers(rules: &PodRules, address: IpAddr, field: Field) -> Vec<u32> {
    let found = of(rules, address, field).into_iter().filter(|(_, first, last)| first == last);
    found.filter_map(|(_, first, _)| u32::try_from(first).ok()).collect()
}

/// The first ports of the ranges that the rules distinguish.
pub(super) fn port_starts(rules: &PodRules, address: IpAddr) -> BTreeSet<u16> {
    let narrow = |number: u128| u16::try_from(number).ok();
    let bounds = of(rules, address, Field::DestinationPort).into_iter();
    let bounds = bounds.flat_map(|(_, first, last)| [narrow(first), narrow(last + 1)]);
    bounds.flatten().chain([1]).filter(|port| *port > 0).collect()
}

/// A process that is not exempt by a number of its own.
pub(super) fn ordinary(rules: &PodRules, address: IpAddr) -> Sender {
    let free = |field| {
        let taken = numbers(rules, address, field);
        (ORDINARY..=u32::MAX).find(|number| !taken.contains(number)).unwrap_or(ORDINARY)
    };
    Sender { uid: free(Field::User), gid: free(Field::Group), mark: 0 }
}

/// A client elsewhere, of the same family.
pub(super) fn client(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => Ipv4Addr::new(203, 0, 113, 5).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 5).into(),
    }
}

/// A server elsewhere, of the same family.
pub(super) fn server(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => Ipv4Addr::new(198, 51, 100, 7).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7).into(),
    }
}
