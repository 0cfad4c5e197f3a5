//! Tables of iptables-legacy: entries one after the other, each with addresses, matches and a
//! target. Jumps lead to places in the table, where chains begin.

use std::collections::BTreeMap;

use super::bytes::{Bytes, big_endian};
use super::{DecodeError, xt};
use crate::dump::{LegacyFamily, LegacyTable};
use crate::rules::{
    BackEnd, Base, Chain, ChainKind, Field, Hook, Match, Rule, Side, Statement, Table, TableFamily, Verdict,
};

/// Where the fields of an entry are.
struct Layout {
    address: usize,
    interfaces: usize,
    protocol: usize,
    flags: usize,
    /// Of the target, counted from the entry; the entry's length follows.
    target: usize,
    header: usize,
}

const IPV4: Layout = Layout { address: 4, interfaces: 16, protocol: 80, flags: 82, target: 88, header: 112 };
const IPV6: Layout =
    Layout { address: 16, interfaces: 64, protocol: 128, flags: 131, target: 140, header: 168 };

/// The byte length of the header of a match or a target: size, name, revision.
const EXTENSION_HEADER: usize = 32;
const BUILT_IN: [&str; 5] = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];

/// An entry, before the names of chains are known.
struct Entry {
    place: usize,
    rule: Rule,
    end: End,
}

/// How an entry ends.
enum End {
    /// A chain of this name begins.
    Chain(String),
    /// A verdict, or nothing.
    Verdict(Option<Verdict>),
    /// Goes on at this place.
    To { place: usize, comes_back: bool },
}

/// Reads a table.
pub(super) fn read(table: &LegacyTable) -> Result<Table, DecodeError> {
    let layout = match table.family {
        LegacyFamily::Ip => &IPV4,
        LegacyFamily::Ip6 => &IPV6,
    };
    let mut entries = Vec::new();
    let mut place = 0;
    while place < table.entries.0.len() {
        let malformed = || DecodeError::Legacy { table: table.name.clone(), place };
        let rest = Bytes(&table.entries.0[place..]);
        let (entry, length) = entry(place, rest, layout).ok_or_else(malformed)?;
        entries.push(entry);
        // An entry of no length would never end.
        place += Some(length).filter(|length| *length >= layout.header).ok_or_else(malformed)?;
    }
    Ok(Table {
        family: match table.family {
            LegacyFamily::Ip => TableFamily::Ip,
            LegacyFamily::Ip6 => TableFamily::Ip6,
        },
        name: table.name.clone(),
        back_end: BackEnd::IptablesLegacy,
        chains: chains(table, entries),
    })
}

/// Splits the entries into chains, and replaces places by names.
fn chains(table: &LegacyTable, entries: Vec<Entry>) -> BTreeMap<String, Chain> {
    let begins = |place: usize| table.hooks.iter().position(|hook| *hook == u32::try_from(place).ok());
    let mut names: BTreeMap<usize, String> = BTreeMap::new();
    for (entry, next) in entries.iter().zip(entries.iter().skip(1)) {
        if let End::Chain(name) = &entry.end {
            names.insert(next.place, name.clone());
        }
    }
    let mut chains = BTreeMap::new();
    let mut current: Option<String> = None;
    for Entry { place, mut rule, end } in entries {
        if let Some(hook) = begins(place) {
            let name = BUILT_IN[hook];
            chains.insert(name.to_owned(), Chain { base: base(&table.name, hook), rules: Vec::new() });
            current = Some(name.to_owned());
        }
        let verdict = match end {
            End::Chain(name) => {
                chains.entry(name.clone()).or_insert_with(Chain::default);
                current = Some(name);
                continue;
            }
            End::Verdict(verdict) => verdict,
            End::To { place, comes_back } => {
                let name = names.get(&place).cloned().unwrap_or_else(|| format!("byte {place}"));
                Some(if comes_back { Verdict::Jump(name) } else { Verdict::Goto(name) })
            }
        };
        rule.statements.extend(verdict.map(Statement::Verdict));
        if let Some(chain) = current.as_ref().and_then(|name| chains.get_mut(name)) {
            chain.rules.push(rule);
        }
    }
    // The last entry ends the table; it is no chain.
    chains.remove("ERROR");
    chains.values_mut().for_each(end);
    chains
}

/// The last rule of a chain is its policy, or returns.
fn end(chain: &mut Chain) {
    let last = chain.rules.pop();
    if let Some(base) = &mut chain.base {
        let verdict = last.and_then(|mut rule| rule.statements.pop());
        base.drops = verdict == Some(Statement::Verdict(Verdict::Drop));
    }
}

/// The priorities of iptables.
fn base(table: &str, hook: usize) -> Option<Base> {
    const SOURCE_NAT: [Hook; 2] = [Hook::Input, Hook::Postrouting];
    let hook = u32::try_from(hook).ok().and_then(Hook::numbered)?;
    let (kind, priority) = match table {
        "raw" => (ChainKind::Filter, -300),
        "mangle" if hook == Hook::Output => (ChainKind::Route, -150),
        "mangle" => (ChainKind::Filter, -150),
        "nat" if SOURCE_NAT.contains(&hook) => (ChainKind::Nat, 100),
        "nat" => (ChainKind::Nat, -100),
        "security" => (ChainKind::Filter, 50),
        _ => (ChainKind::Filter, 0),
    };
    Some(Base { kind, hook, priority, drops: false })
}

fn entry(place: usize, bytes: Bytes<'_>, layout: &Layout) -> Option<(Entry, usize)> {
    const GOTO: u8 = 2;
    let target = usize::from(bytes.u16(layout.target)?);
    let length = usize::from(bytes.u16(layout.target + 2)?);
    let mut statements: Vec<Statement> = header(bytes, layout)?.into_iter().map(Statement::Match).collect();
    let is_ipv6 = layout.address == 16;
    let mut at = layout.header;
    while at < target {
        let (name, revision, info, size) = extension(bytes, at)?;
        let extension = xt::Extension { name: &name, revision, is_ipv6, info };
        statements.extend(xt::matches(&extension));
        at += size;
    }
    let (name, revision, info, _) = extension(bytes, target)?;
    // For IPv6 the flags are one byte further, and both mean the same.
    let goes = bytes.u8(layout.flags)? & GOTO != 0;
    let end = match name.as_str() {
        "" => standard(Bytes(info).u32(0)?.cast_signed(), !goes),
        "ERROR" => End::Chain(Bytes(info).name(0, 30)?),
        name => {
            statements.extend(xt::target(&xt::Extension { name, revision, is_ipv6, info }));
            End::Verdict(None)
        }
    };
    Some((Entry { place, rule: Rule { statements, comment: None }, end }, length))
}

/// The name, the revision, the data and the length of a match or a target.
fn extension(bytes: Bytes<'_>, at: usize) -> Option<(String, u32, &[u8], usize)> {
    let size = usize::from(bytes.u16(at)?);
    let data = bytes.slice(at + EXTENSION_HEADER, size.checked_sub(EXTENSION_HEADER)?)?;
    Some((bytes.name(at + 2, 29)?, bytes.u8(at + 31)?.into(), data, size))
}

/// A verdict: the kernel has those below zero, and places above.
fn standard(number: i32, comes_back: bool) -> End {
    const DROP: i32 = -1;
    const ACCEPT: i32 = -2;
    const RETURN: i32 = -5;
    match usize::try_from(number) {
        Ok(place) => End::To { place, comes_back },
        Err(_) => End::Verdict(match number {
            DROP => Some(Verdict::Drop),
            ACCEPT => Some(Verdict::Accept),
            RETURN => Some(Verdict::Return),
            _ => None,
        }),
    }
}

/// Addresses, interfaces and protocol.
fn header(bytes: Bytes<'_>, layout: &Layout) -> Option<Vec<Match>> {
    const INPUT: u8 = 1;
    const OUTPUT: u8 = 2;
    const SOURCE: u8 = 8;
    const DESTINATION: u8 = 16;
    const PROTOCOL: u8 = 64;
    let inverted = bytes.u8(layout.flags + 1)?;
    let fields = match layout.address {
        4 => [Field::Source4, Field::Destination4],
        _ => [Field::Source6, Field::Destination6],
    };
    let mut tests = Vec::new();
    for (place, (side, flag)) in [(Side::Input, INPUT), (Side::Output, OUTPUT)].into_iter().enumerate() {
        let name = bytes.name(layout.interfaces + 16 * place, 16)?;
        let mask = bytes.slice(layout.interfaces + 32 + 16 * place, 16)?;
        let negated = inverted & flag != 0;
        if mask.iter().any(|byte| *byte != 0) {
            // The mask of a whole name covers its final zero byte.
            let prefix = mask.get(name.len()).is_none_or(|byte| *byte == 0);
            tests.push(Match::Interface { side, name, prefix, negated });
        }
    }
    for ((place, field), flag) in fields.into_iter().enumerate().zip([SOURCE, DESTINATION]) {
        let value = big_endian(bytes.slice(layout.address * place, layout.address)?)?;
        let mask = big_endian(bytes.slice(layout.address * (2 + place), layout.address)?)?;
        let negated = inverted & flag != 0;
        if mask != 0 || negated {
            tests.push(Match::Number { field, mask, ranges: vec![(value, value)], negated });
        }
    }
    let protocol = u128::from(bytes.u16(layout.protocol)?);
    if protocol != 0 {
        let (field, ranges) = (Field::Protocol, vec![(protocol, protocol)]);
        tests.push(Match::Number { field, mask: field.all(), ranges, negated: inverted & PROTOCOL != 0 });
    }
    Some(tests)
}
