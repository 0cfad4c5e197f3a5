//! Packet rules of every origin in one form: `nf_tables`, iptables-nft and iptables-legacy.
//!
//! A rule is a list of statements. Matches compare one field of the packet with numbers; whatever
//! the decoder does not know is kept as [`Statement::Unknown`], so that nobody guesses what it
//! does.

mod text;

use std::collections::BTreeMap;
use std::net::IpAddr;

pub use isp_dataplane::nft::{ChainKind, Hook};
use serde::Serialize;

/// All tables of a network namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ruleset {
    /// The tables, in the order in which the kernel lists them.
    pub tables: Vec<Table>,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The packets that it sees.
    pub family: TableFamily,
    /// The name.
    pub name: String,
    /// The kind of program that wrote it.
    pub back_end: BackEnd,
    /// The chains by name.
    pub chains: BTreeMap<String, Chain>,
}

/// The family of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFamily {
    /// IPv4.
    Ip,
    /// IPv6.
    Ip6,
    /// Both.
    Inet,
}

impl TableFamily {
    /// Whether packets to this address pass the table.
    pub fn sees(self, address: IpAddr) -> bool {
        match self {
            Self::Ip => address.is_ipv4(),
            Self::Ip6 => address.is_ipv6(),
            Self::Inet => true,
        }
    }
}

/// The kind of program that wrote a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum BackEnd {
    /// `nft` or another program that uses `nf_tables` itself.
    Nftables,
    /// `iptables` on top of `nf_tables`.
    IptablesNft,
    /// `iptables` of old.
    IptablesLegacy,
}

/// A chain of rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chain {
    /// Where the kernel calls it; `None` if only rules do.
    pub base: Option<Base>,
    /// The rules in order.
    pub rules: Vec<Rule>,
}

/// Where the kernel calls a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Base {
    /// The kind of chain.
    pub kind: ChainKind,
    /// The place in the network stack.
    pub hook: Hook,
    /// Chains with lower numbers come first.
    pub priority: i32,
    /// Whether a packet is dropped at the end of the chain.
    pub drops: bool,
}

/// A rule: the statements apply one after the other, until a match fails.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// The statements.
    pub statements: Vec<Statement>,
    /// The author's comment.
    pub comment: Option<String>,
}

/// A part of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    /// The rule ends here unless the packet matches.
    Match(Match),
    /// Changes a mark.
    Assign(Assign),
    /// Rewrites the destination to this machine.
    Redirect {
        /// The new port; `None` keeps it.
        port: Option<u16>,
    },
    /// Hands the packet to a transparent socket.
    Tproxy(Tproxy),
    /// Rewrites the destination.
    DestinationNat {
        /// The new address; `None` keeps it.
        address: Option<IpAddr>,
        /// The new port; `None` keeps it.
        port: Option<u16>,
    },
    /// Rewrites the source.
    SourceNat,
    /// Decides.
    Verdict(Verdict),
    /// Something that the decoder does not know.
    Unknown(String),
}

/// Hands packets to a transparent socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tproxy {
    /// The port of the socket; `None` is the packet's own.
    pub port: Option<u16>,
    /// The mark of the packet afterwards.
    pub mark: Option<Assign>,
    /// Whether the packet is accepted then, and dropped without such a socket. That is so in
    /// iptables; `nf_tables` goes on with the rule, or leaves it.
    pub decides: bool,
}

/// What becomes of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It leaves the base chain, and the next one sees it.
    Accept,
    /// It is dropped, with or without an error to its sender.
    Drop,
    /// It leaves the chain.
    Return,
    /// It passes another chain and comes back.
    Jump(String),
    /// It goes on in another chain.
    Goto(String),
}

/// A comparison of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match {
    /// `field & mask` is in one of the ranges, or in none.
    Number {
        /// The field.
        field: Field,
        /// The bits that are compared.
        mask: u128,
        /// First and last number of each range.
        ranges: Vec<(u128, u128)>,
        /// Whether the number must be in none.
        negated: bool,
    },
    /// The name of an interface.
    Interface {
        /// Of the incoming or the outgoing one.
        side: Side,
        /// The name, or its beginning.
        name: String,
        /// Whether the name only begins so.
        prefix: bool,
        /// Whether it must be another one.
        negated: bool,
    },
}

/// Which interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one that the packet came in by.
    Input,
    /// The one that it leaves by.
    Output,
}

/// A field of a packet, its connection or its socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// Source of an IPv4 packet.
    Source4,
    /// Destination of an IPv4 packet.
    Destination4,
    /// Source of an IPv6 packet.
    Source6,
    /// Destination of an IPv6 packet.
    Destination6,
    /// `NFPROTO_*`: 2 for IPv4, 10 for IPv6.
    Family,
    /// The number of the transport protocol.
    Protocol,
    /// The source port.
    SourcePort,
    /// The destination port.
    DestinationPort,
    /// The flags of TCP.
    TcpFlags,
    /// The mark of the packet.
    Mark,
    /// The mark of the connection.
    ConnectionMark,
    /// The state of the connection, one bit each: 1 invalid, 2 established, 4 related, 8 new.
    ConnectionState,
    /// 0 for the direction of the first packet, 1 for answers.
    Direction,
    /// The user of the socket.
    User,
    /// The group of the socket.
    Group,
    /// The class id of the socket's `net_cls` control group.
    NetCls,
    /// The number of the socket's control group of version 2 at a level.
    Cgroup,
    /// The type of the source address, `RTN_*`.
    SourceType,
    /// The type of the destination address, `RTN_*`.
    DestinationType,
    /// Whether a transparent socket has the connection.
    TransparentSocket,
}

/// A mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkOf {
    /// Of the packet.
    Packet,
    /// Of the connection.
    Connection,
}

/// `target = (target & keep) ^ (source & mask) ^ value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assign {
    /// The mark that changes.
    pub target: MarkOf,
    /// Its bits that stay.
    pub keep: u32,
    /// Another mark that is copied, and which of its bits.
    pub source: Option<(MarkOf, u32)>,
    /// A constant.
    pub value: u32,
}

impl Assign {
    /// Sets the packet's mark as iptables does: clears the bits of the mask, then flips those of
    /// the value.
    pub(crate) fn mark(target: MarkOf, value: u32, mask: u32) -> Self {
        Self { target, keep: !mask, source: None, value }
    }
}
