//! Policy routing as messages of rtnetlink: one rule and one route of a family, to add, to list and
//! to delete.

use super::attributes::{Attribute, Attributes, Malformed};
use super::lower::protocol_family;
use super::message::{self, Message, flag};
use crate::nft::{Family, Mark};
use crate::redirect::{LocalDelivery, Routing};

const NEW_ROUTE: u16 = 24;
const DELETE_ROUTE: u16 = 25;
const GET_ROUTE: u16 = 26;
const NEW_RULE: u16 = 32;
const DELETE_RULE: u16 = 33;
const GET_RULE: u16 = 34;

/// The byte length of the header of a route and of a rule, which have the same fields.
const HEADER: usize = 12;
/// The table's number has its own attribute: the header has room for small numbers only.
const TABLE_UNSPECIFIED: u8 = 0;

/// Attributes of rules, `FRA_*`.
mod rule {
    pub(super) const PREFERENCE: u16 = 6;
    pub(super) const MARK: u16 = 10;
    pub(super) const TABLE: u16 = 15;
    pub(super) const MASK: u16 = 16;
    /// Look the table up.
    pub(super) const TO_TABLE: u8 = 1;
}

/// Attributes of routes, `RTA_*`.
mod route {
    pub(super) const OUTPUT: u16 = 4;
    pub(super) const TABLE: u16 = 15;
    /// Local delivery.
    pub(super) const LOCAL: u8 = 2;
    /// Within this machine.
    pub(super) const HOST: u8 = 254;
    /// Added by an administrator, `RTPROT_STATIC`.
    pub(super) const STATIC: u8 = 4;
}

/// The loopback interface is the first of every network namespace.
const LOOPBACK: u32 = 1;

/// A request to add or to delete one part of the routing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Adds the route, or replaces the default route of the table.
    AddRoute,
    /// Adds the rule. Fails with EEXIST if it exists.
    AddRule,
    /// Deletes the rule.
    DeleteRule,
    /// Deletes the route.
    DeleteRoute,
}

impl Request {
    /// The message.
    pub fn write(self, delivery: &LocalDelivery, sequence: u32) -> Vec<u8> {
        let (kind, flags) = match self {
            Self::AddRoute => (NEW_ROUTE, flag::CREATE | flag::REPLACE),
            Self::AddRule => (NEW_RULE, flag::CREATE | flag::EXCLUSIVE),
            Self::DeleteRule => (DELETE_RULE, 0),
            Self::DeleteRoute => (DELETE_ROUTE, 0),
        };
        let family = protocol_family(delivery.family);
        let Routing { mark, table } = delivery.routing;
        // Whoever added the route, it is deleted.
        let origin = if self == Self::AddRoute { route::STATIC } else { 0 };
        let (header, attributes) = match self {
            Self::AddRoute | Self::DeleteRoute => (
                [family, 0, 0, 0, TABLE_UNSPECIFIED, origin, route::HOST, route::LOCAL, 0, 0, 0, 0],
                vec![(route::TABLE, table), (route::OUTPUT, LOOPBACK)],
            ),
            Self::AddRule | Self::DeleteRule => (
                [family, 0, 0, 0, TABLE_UNSPECIFIED, 0, 0, rule::TO_TABLE, 0, 0, 0, 0],
                vec![
                    (rule::PREFERENCE, LocalDelivery::PREFERENCE),
                    (rule::MARK, mark.value),
                    (rule::MASK, mark.mask),
                    (rule::TABLE, table),
                ],
            ),
        };
        let flags = flag::REQUEST | flag::ACK | flags;
        let mut out = Vec::new();
        message::write_with(&mut out, kind, flags, sequence, &header, |out| {
            for (kind, value) in attributes {
                out.host32(kind, value);
            }
        });
        out
    }
}

/// The rule and the route, as far as the kernel has them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FoundRouting {
    /// Whether there is the rule.
    pub rule: bool,
    /// Whether there is the route.
    pub route: bool,
}

impl FoundRouting {
    /// The requests for all rules and for all routes of a family.
    pub fn queries(family: Family, sequence: u32) -> [Vec<u8>; 2] {
        [(GET_RULE, sequence), (GET_ROUTE, sequence + 1)].map(|(kind, sequence)| {
            let mut header = [0; HEADER];
            header[0] = protocol_family(family);
            let mut out = Vec::new();
            message::write_with(&mut out, kind, flag::REQUEST | flag::DUMP, sequence, &header, |_| {});
            out
        })
    }

    /// Reads an answer.
    pub fn read(&mut self, message: Message<'_>, delivery: &LocalDelivery) -> Result<(), Malformed> {
        let (header, rest) = message.body.split_first_chunk::<HEADER>().ok_or(Malformed::Message)?;
        let [family, to_length, from_length, service, small_table, _, _, kind, ..] = *header;
        if family != protocol_family(delivery.family) {
            return Ok(());
        }
        let attributes = Attributes(rest);
        let number = |kind| attributes.find(kind)?.map(Attribute::host32).transpose();
        let Routing { mark, table } = delivery.routing;
        let anywhere = (to_length, from_length, service) == (0, 0, 0);
        let of_table = |found: Option<u32>| found.unwrap_or(u32::from(small_table)) == table;
        match message.kind {
            NEW_RULE => {
                let found = Mark {
                    value: number(rule::MARK)?.unwrap_or_default(),
                    mask: number(rule::MASK)?.unwrap_or(u32::MAX),
                };
                let ours = kind == rule::TO_TABLE
                    && of_table(number(rule::TABLE)?)
                    && number(rule::PREFERENCE)? == Some(LocalDelivery::PREFERENCE);
                self.rule |= anywhere && ours && found == mark;
            }
            NEW_ROUTE => {
                let ours = kind == route::LOCAL
                    && of_table(number(route::TABLE)?)
                    && number(route::OUTPUT)? == Some(LOOPBACK);
                self.route |= anywhere && ours;
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
