//! The extensions of iptables, which iptables-nft and iptables-legacy share: matches and targets in
//! the memory layout of the kernel.

mod target;

pub(super) use target::target;

use super::bytes::Bytes;
use crate::rules::{Field, Match, Statement};

/// A match or a target.
pub(super) struct Extension<'a> {
    pub(super) name: &'a str,
    pub(super) revision: u32,
    pub(super) is_ipv6: bool,
    pub(super) info: &'a [u8],
}

/// Decodes an extension.
pub(super) type Decode = fn(&Extension<'_>) -> Vec<Statement>;

impl Extension<'_> {
    /// The statement for an extension that is not known, or not in this revision.
    fn unknown(&self) -> Vec<Statement> {
        vec![Statement::Unknown(format!("{} of revision {}", self.name, self.revision))]
    }
}

/// Decodes a match.
pub(super) fn matches(extension: &Extension<'_>) -> Vec<Statement> {
    let info = Bytes(extension.info);
    let tests = match (extension.name, extension.revision) {
        ("comment", _) => Some(Vec::new()),
        ("tcp", 0) => tcp(info),
        ("udp", 0) => ports(info, info.u8(8)),
        ("multiport", 1) => multiport(info),
        ("owner", 1) => owner(info),
        ("mark", 1) => mark(Field::Mark, info),
        ("connmark", 1) => mark(Field::ConnectionMark, info),
        ("conntrack", 1..=3) => conntrack(extension.revision, info),
        ("state", 0) => info.u32(0).map(|states| vec![state(states, false)]),
        ("addrtype", 1) => address_type(info),
        ("socket", 1..=3) => socket(info),
        _ => None,
    };
    match tests {
        Some(tests) => tests.into_iter().map(Statement::Match).collect(),
        None => extension.unknown(),
    }
}

fn test(field: Field, ranges: impl Into<Vec<(u128, u128)>>, negated: bool) -> Match {
    Match::Number { field, mask: field.all(), ranges: ranges.into(), negated }
}

fn range(field: Field, first: impl Into<u128>, last: impl Into<u128>, negated: bool) -> Match {
    test(field, [(first.into(), last.into())], negated)
}

/// Source and destination ports, first and last; then flags.
fn ports(info: Bytes<'_>, inverted: Option<u8>) -> Option<Vec<Match>> {
    const SOURCE: u8 = 1;
    const DESTINATION: u8 = 2;
    let inverted = inverted?;
    let sides = [(Field::SourcePort, 0, SOURCE), (Field::DestinationPort, 4, DESTINATION)];
    let tests = sides.into_iter().map(|(field, place, flag)| {
        let (first, last) = (info.u16(place)?, info.u16(place + 2)?);
        let negated = inverted & flag != 0;
        let is_any = (first, last) == (0, u16::MAX) && !negated;
        Some((!is_any).then(|| range(field, first, last, negated)))
    });
    tests.collect::<Option<Vec<_>>>().map(|tests| tests.into_iter().flatten().collect())
}

fn tcp(info: Bytes<'_>) -> Option<Vec<Match>> {
    const FLAGS: u8 = 4;
    let (option, mask, value, inverted) = (info.u8(8)?, info.u8(9)?, info.u8(10)?, info.u8(11)?);
    let mut tests = ports(info, Some(inverted))?;
    if mask != 0 || inverted & FLAGS != 0 {
        let value = u128::from(value);
        let (field, mask) = (Field::TcpFlags, u128::from(mask));
        tests.push(Match::Number {
            field,
            mask,
            ranges: vec![(value, value)],
            negated: inverted & FLAGS != 0,
        });
    }
    (option == 0).then_some(tests)
}

fn multiport(info: Bytes<'_>) -> Option<Vec<Match>> {
    const PORTS: usize = 2;
    const RANGE_FLAGS: usize = 32;
    const INVERTED: usize = 47;
    let field = match info.u8(0)? {
        0 => Field::SourcePort,
        1 => Field::DestinationPort,
        // One of both: no field can say it.
        _ => return None,
    };
    let count = usize::from(info.u8(1)?);
    let port = |place: usize| info.u16(PORTS + 2 * place).map(u128::from);
    let mut ranges = Vec::new();
    let mut place = 0;
    while place < count {
        let begins_range = info.u8(RANGE_FLAGS + place)? != 0;
        let first = port(place)?;
        place += usize::from(begins_range);
        ranges.push((first, port(place)?));
        place += 1;
    }
    Some(vec![test(field, ranges, info.u8(INVERTED)? != 0)])
}

fn owner(info: Bytes<'_>) -> Option<Vec<Match>> {
    const USER: u8 = 1;
    const GROUP: u8 = 2;
    let (wanted, inverted) = (info.u8(16)?, info.u8(17)?);
    if wanted & !(USER | GROUP) != 0 {
        return None;
    }
    let sides = [(Field::User, 0, USER), (Field::Group, 8, GROUP)];
    let tests = sides.into_iter().filter(|(.., flag)| wanted & flag != 0).map(|(field, place, flag)| {
        Some(range(field, info.u32(place)?, info.u32(place + 4)?, inverted & flag != 0))
    });
    tests.collect()
}

fn mark(field: Field, info: Bytes<'_>) -> Option<Vec<Match>> {
    let (value, mask, inverted) = (u128::from(info.u32(0)?), info.u32(4)?, info.u8(8)?);
    let (ranges, mask) = (vec![(value, value)], u128::from(mask));
    Some(vec![Match::Number { field, mask, ranges, negated: inverted != 0 }])
}

/// A connection in one of these states. The kernel has a bit for each, as `nf_tables` does.
fn state(states: u32, negated: bool) -> Match {
    let (field, mask, ranges) = (Field::ConnectionState, u128::from(states), vec![(0, 0)]);
    Match::Number { field, mask, ranges, negated: !negated }
}

fn conntrack(revision: u32, info: Bytes<'_>) -> Option<Vec<Match>> {
    const FLAGS: usize = 146;
    const INVERTED: usize = 148;
    const STATES: usize = 150;
    const STATE: u16 = 1;
    let (flags, inverted) = (info.u16(FLAGS)?, info.u16(INVERTED)?);
    let states = if revision == 1 { info.u8(STATES).map(u16::from) } else { info.u16(STATES) };
    (flags == STATE).then_some(vec![state(states?.into(), inverted & STATE != 0)])
}

/// The type of an address, as a bit for each `RTN_*`.
fn address_type(info: Bytes<'_>) -> Option<Vec<Match>> {
    const INVERTED: [u32; 2] = [1, 2];
    let flags = info.u32(4)?;
    // The others restrict the lookup to an interface.
    if flags & !(INVERTED[0] | INVERTED[1]) != 0 {
        return None;
    }
    let sides = [(Field::SourceType, 0), (Field::DestinationType, 2)];
    let mut tests = Vec::new();
    for ((field, place), inverted) in sides.into_iter().zip(INVERTED) {
        let types = info.u16(place)?;
        if types != 0 {
            let ranges = (0..16).filter(|kind| types & 1 << kind != 0);
            let ranges: Vec<_> = ranges.map(|kind| (kind, kind)).collect();
            tests.push(test(field, ranges, flags & inverted != 0));
        }
    }
    Some(tests)
}

fn socket(info: Bytes<'_>) -> Option<Vec<Match>> {
    const TRANSPARENT: u8 = 1;
    (info.u8(0)? == TRANSPARENT).then(|| vec![range(Field::TransparentSocket, 1_u8, 1_u8, false)])
}
