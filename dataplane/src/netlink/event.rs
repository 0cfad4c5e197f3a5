//! Notifications: what other programs, and this one, changed.
//!
//! The kernel sends one message for each change of a commit, and then the new generation with the
//! process that committed. Elements that rules add or that expire cause no notification.

use super::attributes::{Attribute, Malformed};
use super::lower::protocol_family;
use super::message::Message;
use super::nf_tables::{chain, element_list, generation, message as kind, rule, set, table};
use crate::nft::Family;

/// A notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// An object of a table was added, changed or deleted.
    Changed {
        /// The family, if it is IPv4 or IPv6.
        family: Option<Family>,
        /// The table.
        table: String,
        /// In words, such as `deleted chain services`.
        what: String,
    },
    /// A commit is complete.
    Committed {
        /// The new generation.
        generation: u32,
        /// The process that committed.
        process: Process,
    },
}

/// A process, as the kernel names it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// Its id; 0 if the kernel did not tell.
    pub id: u32,
    /// The name of its program, shortened to 15 bytes.
    pub name: String,
}

impl std::fmt::Display for Process {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.id == 0 {
            return out.write_str("an unknown process");
        }
        write!(out, "process {} ({})", self.id, self.name)
    }
}

impl Event {
    /// Reads a message. `None` for messages that are no changes of tables.
    pub(super) fn read(message: Message<'_>) -> Result<Option<Self>, Malformed> {
        let (verb, object, table, name) = match message.kind {
            kind::NEW_GENERATION => return Self::read_commit(message).map(Some),
            kind::NEW_TABLE => ("added", "the table", table::NAME, None),
            kind::DELETE_TABLE => ("deleted", "the table", table::NAME, None),
            kind::NEW_CHAIN => ("added", "chain", chain::TABLE, Some(chain::NAME)),
            kind::DELETE_CHAIN => ("deleted", "chain", chain::TABLE, Some(chain::NAME)),
            kind::NEW_RULE => ("added", "a rule of chain", rule::TABLE, Some(rule::CHAIN)),
            kind::DELETE_RULE => ("deleted", "a rule of chain", rule::TABLE, Some(rule::CHAIN)),
            kind::NEW_SET => ("added", "set", set::TABLE, Some(set::NAME)),
            kind::DELETE_SET => ("deleted", "set", set::TABLE, Some(set::NAME)),
            kind::NEW_ELEMENT => ("added", "elements of set", element_list::TABLE, Some(element_list::SET)),
            kind::DELETE_ELEMENT => {
                ("deleted", "elements of set", element_list::TABLE, Some(element_list::SET))
            }
            _ => return Ok(None),
        };
        let attributes = message.attributes()?;
        let found = message.family()?;
        let name = match name {
            Some(name) => attributes.find(name)?.map(Attribute::text).transpose()?,
            None => None,
        };
        Ok(Some(Self::Changed {
            family: Family::ALL.into_iter().find(|family| protocol_family(*family) == found),
            table: attributes.require(table)?.text()?.to_owned(),
            what: [verb, object].into_iter().chain(name).collect::<Vec<_>>().join(" "),
        }))
    }

    fn read_commit(message: Message<'_>) -> Result<Self, Malformed> {
        let attributes = message.attributes()?;
        let id = attributes.find(generation::PROCESS)?.map(Attribute::be32).transpose()?;
        let name = attributes.find(generation::PROCESS_NAME)?.map(Attribute::text).transpose()?;
        Ok(Self::Committed {
            generation: attributes.require(generation::ID)?.be32()?,
            process: Process { id: id.unwrap_or_default(), name: name.unwrap_or_default().to_owned() },
        })
    }
}
