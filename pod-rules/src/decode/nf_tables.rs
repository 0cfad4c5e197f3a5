//! Tables, chains and rules of `nf_tables`.

use std::collections::BTreeMap;

use isp_dataplane::netlink::{Attribute, Malformed, Message, Messages};

use super::expression::{Context, statements};
use super::numbers::{INET, IPV4, IPV6, NEW_CHAIN, NEW_ELEMENT, NEW_RULE, NEW_SET, NEW_TABLE};
use super::sets::Sets;
use crate::rules::{BackEnd, Base, Chain, ChainKind, Hook, Rule, Table, TableFamily};

/// The tables of iptables, and its chains that the kernel calls.
const IPTABLES: [&str; 5] = ["raw", "mangle", "nat", "filter", "security"];
const BUILT_IN: [&str; 5] = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];

/// Reads the tables of the families that carry IP packets.
pub(super) fn read(bytes: &[u8], links: &BTreeMap<u32, String>) -> Result<Vec<Table>, Malformed> {
    let messages = Messages(bytes).collect::<Result<Vec<_>, _>>()?;
    let mut sets = Sets::default();
    for message in &messages {
        match message.kind {
            NEW_SET => sets.read_set(*message)?,
            NEW_ELEMENT => sets.read_elements(*message)?,
            _ => {}
        }
    }
    let mut tables = Vec::new();
    let of = |kind| messages.iter().filter(move |message| message.kind == kind);
    for message in of(NEW_TABLE) {
        tables.extend(table(*message)?);
    }
    for message in of(NEW_CHAIN) {
        chain(&mut tables, *message)?;
    }
    for message in of(NEW_RULE) {
        rule(&mut tables, *message, links, &sets)?;
    }
    for table in &mut tables {
        table.back_end = back_end(table);
    }
    Ok(tables)
}

fn table(message: Message<'_>) -> Result<Option<Table>, Malformed> {
    const NAME: u16 = 1;
    let Some(family) = family(message)? else { return Ok(None) };
    let name = message.attributes()?.require(NAME)?.text()?.to_owned();
    Ok(Some(Table { family, name, back_end: BackEnd::Nftables, chains: BTreeMap::new() }))
}

fn family(message: Message<'_>) -> Result<Option<TableFamily>, Malformed> {
    Ok(match message.family()? {
        IPV4 => Some(TableFamily::Ip),
        IPV6 => Some(TableFamily::Ip6),
        INET => Some(TableFamily::Inet),
        _ => None,
    })
}

/// The chain that a message belongs to.
fn chain_of<'a>(
    tables: &'a mut [Table],
    message: Message<'_>,
    (table, chain): (u16, u16),
) -> Result<Option<&'a mut Chain>, Malformed> {
    let attributes = message.attributes()?;
    let (Some(family), table) = (family(message)?, attributes.require(table)?.text()?) else {
        return Ok(None);
    };
    let name = attributes.require(chain)?.text()?;
    let table = tables.iter_mut().find(|each| each.family == family && each.name == table);
    Ok(table.map(|table| table.chains.entry(name.to_owned()).or_default()))
}

fn chain(tables: &mut [Table], message: Message<'_>) -> Result<(), Malformed> {
    const TABLE: u16 = 1;
    const NAME: u16 = 3;
    const HOOK: u16 = 4;
    const POLICY: u16 = 5;
    const TYPE: u16 = 7;
    const HOOK_NUMBER: u16 = 1;
    const HOOK_PRIORITY: u16 = 2;
    let attributes = message.attributes()?;
    let Some(chain) = chain_of(tables, message, (TABLE, NAME))? else { return Ok(()) };
    let Some(hook) = attributes.find(HOOK)? else { return Ok(()) };
    let kind = match attributes.find(TYPE)?.map(Attribute::text).transpose()? {
        Some("nat") => ChainKind::Nat,
        Some("route") => ChainKind::Route,
        _ => ChainKind::Filter,
    };
    let policy = attributes.find(POLICY)?.map(Attribute::be32).transpose()?;
    // Chains at the hook `ingress` see packets before they are assembled. No redirect is there.
    let Some(place) = Hook::numbered(hook.nested().require(HOOK_NUMBER)?.be32()?) else { return Ok(()) };
    chain.base = Some(Base {
        kind,
        hook: place,
        priority: hook.nested().require(HOOK_PRIORITY)?.be32()?.cast_signed(),
        drops: policy == Some(0),
    });
    Ok(())
}

fn rule(
    tables: &mut [Table],
    message: Message<'_>,
    links: &BTreeMap<u32, String>,
    sets: &Sets,
) -> Result<(), Malformed> {
    const TABLE: u16 = 1;
    const CHAIN: u16 = 2;
    const EXPRESSIONS: u16 = 4;
    const USER_DATA: u16 = 7;
    let attributes = message.attributes()?;
    let table = attributes.require(TABLE)?.text()?.to_owned();
    let Some(chain) = chain_of(tables, message, (TABLE, CHAIN))? else { return Ok(()) };
    let context = Context { family: message.family()?, table, links, sets };
    let decoded = match attributes.find(EXPRESSIONS)? {
        Some(list) => statements(list.nested(), &context)?,
        None => Vec::new(),
    };
    let comment = attributes.find(USER_DATA)?.and_then(|data| comment(data.value));
    chain.rules.push(Rule { statements: decoded, comment });
    Ok(())
}

/// `nft` keeps the comment as type, length and text.
fn comment(data: &[u8]) -> Option<String> {
    const COMMENT: u8 = 0;
    let [COMMENT, length, rest @ ..] = data else { return None };
    rest.get(..usize::from(*length)).map(super::bytes::name)
}

fn back_end(table: &Table) -> BackEnd {
    let mut base = table.chains.iter().filter(|(_, chain)| chain.base.is_some()).peekable();
    let is_named = table.family != TableFamily::Inet && IPTABLES.contains(&table.name.as_str());
    let is_iptables =
        is_named && base.peek().is_some() && base.all(|(name, _)| BUILT_IN.contains(&name.as_str()));
    if is_iptables { BackEnd::IptablesNft } else { BackEnd::Nftables }
}
