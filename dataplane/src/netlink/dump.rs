//! Requests for what the kernel has, and its answers.

use super::attributes::{Attribute, Malformed};
use super::lower::protocol_family;
use super::message::{self, Head, Message, flag};
use super::nf_tables::{chain, element_list, generation, message as kind, rule, set, table};
use crate::nft::{Family, Name};

/// What to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query<'a> {
    /// The generation of the ruleset, which every commit of any program increases.
    Generation,
    /// All tables of a family.
    Tables(Family),
    /// All chains of a family, of all tables.
    Chains(Family),
    /// The rules of a table.
    Rules(Family, &'a Name),
    /// The sets of a table.
    Sets(Family, &'a Name),
    /// The elements of a set.
    Elements(Family, &'a Name, &'a Name),
}

impl Query<'_> {
    /// The request.
    pub fn write(self, sequence: u32) -> Vec<u8> {
        let (kind, family) = match self {
            Self::Generation => (kind::GET_GENERATION, None),
            Self::Tables(family) => (kind::GET_TABLE, Some(family)),
            Self::Chains(family) => (kind::GET_CHAIN, Some(family)),
            Self::Rules(family, _) => (kind::GET_RULE, Some(family)),
            Self::Sets(family, _) => (kind::GET_SET, Some(family)),
            Self::Elements(family, ..) => (kind::GET_ELEMENT, Some(family)),
        };
        let flags = flag::REQUEST | if family.is_some() { flag::DUMP } else { flag::ACK };
        let family = family.map_or(0, protocol_family);
        let mut out = Vec::new();
        message::write(&mut out, Head { kind, flags, sequence, family, resource: 0 }, |out| match self {
            Self::Generation | Self::Tables(_) | Self::Chains(_) => {}
            Self::Rules(_, name) => out.text(rule::TABLE, name.as_str()),
            Self::Sets(_, name) => out.text(set::TABLE, name.as_str()),
            Self::Elements(_, name, set) => {
                out.text(element_list::TABLE, name.as_str());
                out.text(element_list::SET, set.as_str());
            }
        });
        out
    }
}

/// The generation in the answer to [`Query::Generation`]. `None` for other messages.
pub fn read_generation(message: Message<'_>) -> Result<Option<u32>, Malformed> {
    if message.kind != kind::NEW_GENERATION {
        return Ok(None);
    }
    message.attributes()?.require(generation::ID)?.be32().map(Some)
}

/// A table that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundTable {
    /// The name.
    pub name: String,
    /// The port of the socket that owns it.
    pub owner: Option<u32>,
    /// Whether only its owner may change it. It stays when the owner ends, and waits for the next
    /// one.
    pub exclusive: bool,
}

impl FoundTable {
    /// Reads an answer to [`Query::Tables`].
    pub fn read(message: Message<'_>) -> Result<Option<Self>, Malformed> {
        if message.kind != kind::NEW_TABLE {
            return Ok(None);
        }
        let attributes = message.attributes()?;
        let flags = attributes.find(table::FLAGS)?.map(Attribute::be32).transpose()?.unwrap_or_default();
        Ok(Some(Self {
            name: attributes.require(table::NAME)?.text()?.to_owned(),
            owner: attributes.find(table::OWNER)?.map(Attribute::be32).transpose()?,
            exclusive: flags & table::F_PERSIST != 0,
        }))
    }
}

/// Whether an answer to [`Query::Chains`] is about a table.
pub(super) fn chain_is_of(message: Message<'_>, name: &Name) -> Result<bool, Malformed> {
    Ok(message.attributes()?.require(chain::TABLE)?.text()? == name.as_str())
}
