//! Requests for everything that a network namespace has, of all families and whoever made it. The
//! answers are kept as they come: `isp-pod-rules` reads them.

use super::message::{self, Head, Messages, flag};
use super::nf_tables::{element_list, message as kind, set};
use super::{Malformed, Message};

const GET_LINK: u16 = 18;
const GET_ADDRESS: u16 = 22;
const GET_ROUTE: u16 = 26;
const GET_RULE: u16 = 34;

/// The byte length of the longest header of rtnetlink, `ifinfomsg`. The kernel takes it for all
/// lists.
const ROUTE_HEADER: [u8; 16] = [0; 16];
const ALL_FAMILIES: u8 = 0;

/// What to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listing {
    /// All tables of `nf_tables`.
    Tables,
    /// All chains.
    Chains,
    /// All rules.
    Rules,
    /// All sets, without their elements.
    Sets,
    /// The elements of one set.
    Elements {
        /// `NFPROTO_*`.
        family: u8,
        /// The table.
        table: String,
        /// The set.
        set: String,
    },
    /// The interfaces.
    Links,
    /// The addresses of the interfaces.
    Addresses,
    /// The routes of all tables.
    Routes,
    /// The rules that choose a routing table.
    RoutingRules,
}

impl Listing {
    /// The lists that a netfilter socket answers and that need nothing else.
    pub const NETFILTER: [Self; 4] = [Self::Tables, Self::Chains, Self::Rules, Self::Sets];
    /// The lists that a routing socket answers.
    pub const ROUTING: [Self; 4] = [Self::Links, Self::Addresses, Self::Routes, Self::RoutingRules];

    /// The request.
    pub fn write(&self, sequence: u32) -> Vec<u8> {
        let flags = flag::REQUEST | flag::DUMP;
        let mut out = Vec::new();
        let netfilter = |kind, family| Head { kind, flags, sequence, family, resource: 0 };
        let mut route = |kind| message::write_with(&mut out, kind, flags, sequence, &ROUTE_HEADER, |_| {});
        let head = match self {
            Self::Tables => netfilter(kind::GET_TABLE, ALL_FAMILIES),
            Self::Chains => netfilter(kind::GET_CHAIN, ALL_FAMILIES),
            Self::Rules => netfilter(kind::GET_RULE, ALL_FAMILIES),
            Self::Sets => netfilter(kind::GET_SET, ALL_FAMILIES),
            Self::Elements { family, .. } => netfilter(kind::GET_ELEMENT, *family),
            Self::Links => {
                return {
                    route(GET_LINK);
                    out
                };
            }
            Self::Addresses => {
                return {
                    route(GET_ADDRESS);
                    out
                };
            }
            Self::Routes => {
                return {
                    route(GET_ROUTE);
                    out
                };
            }
            Self::RoutingRules => {
                return {
                    route(GET_RULE);
                    out
                };
            }
        };
        message::write(&mut out, head, |out| {
            if let Self::Elements { table, set, .. } = self {
                out.text(element_list::TABLE, table);
                out.text(element_list::SET, set);
            }
        });
        out
    }

    /// The lists of the elements of all sets in the answer to [`Listing::Sets`].
    pub fn elements(sets: &[u8]) -> Result<Vec<Self>, Malformed> {
        let is_set = |message: &Result<Message<'_>, Malformed>| {
            message.as_ref().map_or(true, |message| message.kind == kind::NEW_SET)
        };
        let listing = |message: Result<Message<'_>, Malformed>| {
            let message = message?;
            let attributes = message.attributes()?;
            Ok(Self::Elements {
                family: message.family()?,
                table: attributes.require(set::TABLE)?.text()?.to_owned(),
                set: attributes.require(set::NAME)?.text()?.to_owned(),
            })
        };
        Messages(sets).filter(is_set).map(listing).collect()
    }
}
