//! The subset of nftables that the data plane uses, as values.
//!
//! A [`Table`] has [`Set`]s (maps included) and [`Chain`]s of [`Rule`]s. A rule is a list of
//! [`Statement`]s at the level at which a person reads them; a statement that does not match ends
//! its rule. Rules are constant: everything that varies with Services is an [`Element`] of a set.
//! Elements are kept apart from the table, because they are many and change alone. An [`Operation`]
//! is one step of a batch that the kernel commits as a whole.
//!
//! The scratch register of these rules is `meta priority`. A rule sets it from a map, later rules
//! and chains use it as a key (`docs/adr/0018-the-scratch-register-is-the-priority.md`).
//!
//! Three translations read these values: `netlink` into the bytes that the kernel takes,
//! `text` into the text that `nft` prints, and `trace` into the story of a packet.

mod element;
mod handle;
mod mark;
mod operation;
mod rule;

pub use element::{Data, Element, Key, Value};
pub use handle::Handle;
pub use mark::{Mark, Marked};
pub use operation::Operation;
pub use rule::{Field, InterfacePattern, Lookup, Match, NewPriority, Owner, Rule, Statement, Verdict};

use std::{borrow::Cow, fmt, net::IpAddr};

use thiserror::Error;

/// The address family of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// IPv4, `ip`.
    Ip,
    /// IPv6, `ip6`.
    Ip6,
}

impl Family {
    /// Both families.
    pub const ALL: [Self; 2] = [Self::Ip, Self::Ip6];

    /// Returns the family of an address.
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::Ip } else { Self::Ip6 }
    }

    /// Returns the name in nftables.
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Ip6 => "ip6",
        }
    }

    /// Returns the number of bits of an address.
    pub fn address_bits(self) -> u8 {
        match self {
            Self::Ip => 32,
            Self::Ip6 => 128,
        }
    }
}

/// The kernel's limit.
const LONGEST_NAME: usize = 255;

/// A name that a table cannot have.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum BadName {
    /// `nft` could not read it.
    #[error("{0:?} is no name of a table: use letters, digits, '-', '_' and '.', and begin with a letter")]
    Characters(String),
    /// It is too long.
    #[error("{0:?} is no name of a table: use at most 255 characters")]
    Length(String),
}

/// The name of a table, chain, set or map.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Cow<'static, str>);

impl Name {
    /// A name that is part of the program.
    pub const fn constant(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// A name that is made at run time.
    pub fn new(name: String) -> Self {
        Self(Cow::Owned(name))
    }

    /// Checks a name that somebody has written.
    pub fn parse(text: &str) -> Result<Self, BadName> {
        let fits = |each: char| each.is_ascii_alphanumeric() || matches!(each, '-' | '_' | '.');
        if !text.starts_with(|first: char| first.is_ascii_alphabetic()) || !text.chars().all(fits) {
            return Err(BadName::Characters(text.to_owned()));
        }
        if text.len() > LONGEST_NAME {
            return Err(BadName::Length(text.to_owned()));
        }
        Ok(Self::new(text.to_owned()))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// A transport protocol that a Service can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Self; 3] = [Self::Tcp, Self::Udp, Self::Sctp];

    /// Returns the protocol number.
    pub fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
            Self::Sctp => 132,
        }
    }

    /// Returns the protocol of a number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|each| each.number() == number)
    }

    /// Returns the name in nftables.
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        }
    }
}

/// One table: all sets and chains, without the elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The family.
    pub family: Family,
    /// The name, the same in both families.
    pub name: Name,
    /// Sets and maps.
    pub sets: Vec<Set>,
    /// Chains with their rules.
    pub chains: Vec<Chain>,
}

impl Table {
    /// Returns the set or map of that name.
    pub fn set(&self, name: &Name) -> Option<&Set> {
        self.sets.iter().find(|set| set.name == *name)
    }

    /// Returns the steps that make this table, without elements. Chains come before rules, because
    /// rules lead from one to the other.
    pub fn creation(&self) -> Vec<Operation> {
        let sets = self.sets.iter().cloned().map(Operation::AddSet);
        let chains =
            self.chains.iter().map(|chain| Operation::AddChain(Chain { rules: Vec::new(), ..chain.clone() }));
        let rules = self.chains.iter().flat_map(|chain| {
            let of = move |rule: &Rule| Operation::AddRule { chain: chain.name.clone(), rule: rule.clone() };
            chain.rules.iter().map(of)
        });
        std::iter::once(Operation::AddTable).chain(sets).chain(chains).chain(rules).collect()
    }

    /// Returns the chain of that name.
    pub fn chain(&self, name: &Name) -> Option<&Chain> {
        self.chains.iter().find(|chain| chain.name == *name)
    }
}

/// A set, or a map if it has data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// The name.
    pub name: Name,
    /// The fields of the key, in order. More than one field is a concatenation.
    pub key: Vec<Field>,
    /// The type of the data.
    pub data: DataType,
    /// `flags interval`: an element may be a range.
    pub interval: bool,
    /// `flags dynamic,timeout`: rules add elements, which expire.
    pub dynamic: bool,
    /// The largest number of elements. Only dynamic sets have one.
    pub size: Option<u32>,
}

/// The type of the data of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataType {
    /// No data: a set.
    None,
    /// A map to values.
    Values(Vec<Field>),
    /// A map to verdicts.
    Verdict,
}

/// A chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The name.
    pub name: Name,
    /// The hook, if packets enter the table by this chain. The policy is always `accept`.
    pub base: Option<Base>,
    /// The rules, in order.
    pub rules: Vec<Rule>,
}

/// The way packets enter a base chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base {
    /// The type of the chain.
    pub kind: ChainKind,
    /// The hook.
    pub hook: Hook,
    /// The position among the chains of the hook; smaller comes first.
    pub priority: i32,
}

/// The type of a base chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainKind {
    /// Sees every packet.
    Filter,
    /// Sees the first packet of a connection.
    Nat,
    /// Sees every packet of the output hook. A packet whose mark it changes is routed again.
    Route,
}

impl ChainKind {
    /// Returns the name in nftables.
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Nat => "nat",
            Self::Route => "route",
        }
    }
}

/// A hook of the kernel's network stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hook {
    /// Before routing of packets that came in.
    Prerouting,
    /// Packets for the node itself.
    Input,
    /// Packets for others.
    Forward,
    /// Packets of the node itself.
    Output,
    /// All packets that leave.
    Postrouting,
}

impl Hook {
    /// All hooks, in the order of the kernel's numbers.
    const ALL: [Self; 5] = [Self::Prerouting, Self::Input, Self::Forward, Self::Output, Self::Postrouting];

    /// Returns the hook with this number of the kernel.
    pub fn numbered(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|hook| hook.number() == number)
    }

    /// Returns the kernel's number.
    pub fn number(self) -> u32 {
        match self {
            Self::Prerouting => 0,
            Self::Input => 1,
            Self::Forward => 2,
            Self::Output => 3,
            Self::Postrouting => 4,
        }
    }

    /// Returns the name in nftables.
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Prerouting => "prerouting",
            Self::Input => "input",
            Self::Forward => "forward",
            Self::Output => "output",
            Self::Postrouting => "postrouting",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_nft_could_not_read_is_refused() {
        for name in ["ingress-source-preserve", "a", "T.1_x"] {
            assert_eq!(Name::parse(name).unwrap().as_str(), name);
        }
        for name in ["", "1a", "-a", "a b", "a{", "a;flush ruleset", "a\n", "ä"] {
            assert!(matches!(Name::parse(name), Err(BadName::Characters(_))), "{name:?}");
        }
        assert!(matches!(Name::parse(&"a".repeat(256)), Err(BadName::Length(_))));
    }
}
