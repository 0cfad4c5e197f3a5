//! Rules and the statements that they consist of.

use ipnet::IpNet;

use super::{Handle, Mark, Marked, Name, Protocol};

/// One rule: the statements run in order until one does not match or decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The statements.
    pub statements: Vec<Statement>,
    /// A comment for a person who lists the rules.
    pub comment: Option<&'static str>,
}

/// A field of a packet or of its connection. It is also the type of a field of a set (`typeof`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// `ip saddr`, `ip6 saddr`.
    Saddr,
    /// `ip daddr`, `ip6 daddr`.
    Daddr,
    /// `meta l4proto`.
    L4Proto,
    /// `th dport`.
    Dport,
    /// `meta priority`, the scratch register.
    Priority,
    /// `numgen random mod N`.
    Random(u32),
    /// `ct original ip daddr`: the destination before DNAT.
    OriginalDaddr,
    /// `ct original proto-dst`: the destination port before DNAT. `nft` reads it only in a rule
    /// that has matched one protocol before.
    OriginalDport,
}

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// Goes on if the packet matches.
    Match(Match),
    /// Goes on if the key is in a set (`KEY @SET`), or if it is not (`KEY != @SET`).
    InSet {
        /// Key and set.
        lookup: Lookup,
        /// Whether absence is what matches.
        negated: bool,
    },
    /// Sets the scratch register. Goes on, unless it is to come from a map that lacks the key.
    SetPriority(NewPriority),
    /// `meta priority & MASK vmap @MAP`: the verdict of the map; goes on if there is none.
    PriorityVerdict {
        /// The bits that are the key.
        mask: Handle,
        /// A map to verdicts.
        map: Name,
    },
    /// `dnat ip to KEY map @MAP`: redirects to an address and port. Goes on if the map lacks the
    /// key, otherwise the chains of this hook and table end.
    Dnat(Lookup),
    /// `update @MAP { KEY timeout T : DATA }`: adds an element or renews it.
    Update {
        /// Key and map.
        lookup: Lookup,
        /// The data.
        data: Vec<Field>,
        /// Seconds until the element expires.
        timeout: u32,
    },
    /// `masquerade fully-random`.
    Masquerade,
    /// `reject`: ICMP port unreachable.
    Reject,
    /// `meta mark set meta mark | 0x1`: writes the bits of the mask.
    SetMark {
        /// What is marked.
        of: Marked,
        /// The mark.
        mark: Mark,
    },
    /// `tproxy to :PORT`: hands the packet to a transparent socket that listens on the port. Ends
    /// the rule if there is none.
    Tproxy(u16),
    /// `redirect to :PORT`: redirects to the port of this machine, and ends the chain.
    Redirect(u16),
    /// Ends the rule.
    Verdict(Verdict),
}

/// A key and the set in which it is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// The fields of the key, in order.
    pub key: Vec<Field>,
    /// The set or map.
    pub set: Name,
}

/// A test of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// `meta l4proto tcp`.
    Protocol(Protocol),
    /// `meta l4proto != tcp`.
    OtherProtocol(Protocol),
    /// `th dport 8080`.
    Port(u16),
    /// `tcp flags syn / syn,ack`: the first packet of a TCP connection.
    Syn,
    /// `ip saddr 10.0.0.0/8`, or `ip saddr != 10.0.0.0/8`.
    Source {
        /// The range.
        prefix: IpNet,
        /// Whether a source outside the range matches.
        negated: bool,
    },
    /// `iifname "cni0"`, or `iifname != "cni0"`. No interface has the empty name.
    Interface {
        /// The name or its beginning.
        pattern: InterfacePattern,
        /// Whether another interface matches.
        negated: bool,
    },
    /// `oifname "lo"`.
    OutputInterface(&'static str),
    /// `fib saddr type local`: the source is an address of this node.
    SourceIsLocal,
    /// `fib saddr type != local`.
    SourceIsForeign,
    /// `fib daddr type local`.
    DestinationIsLocal,
    /// `fib daddr type != local`.
    DestinationIsForeign,
    /// `meta priority & MASK == none`, or `!= none`.
    PriorityBits {
        /// The bits.
        mask: Handle,
        /// Whether a set bit matches (`!= none`), or that all are clear (`== none`).
        set: bool,
    },
    /// `ct state new`.
    NewConnection,
    /// `ct status dnat`.
    Redirected,
    /// `ct direction reply`: a packet that answers.
    Reply,
    /// `meta mark & 0x1 == 0x1`.
    Marked {
        /// What is marked.
        of: Marked,
        /// The mark.
        mark: Mark,
    },
    /// The process that sent the packet.
    Owner(Owner),
}

/// How the process of a socket is recognized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// `meta skuid 1337`.
    User(u32),
    /// `meta skgid 1337`.
    Group(u32),
    /// `meta cgroup 1048577`: the class id of its `net_cls` control group.
    NetCls(u32),
    /// `socket cgroupv2 level 2 "a/b"`: a control group of version 2, or a group below it.
    Cgroup {
        /// The path, relative to the root.
        path: String,
        /// The number by which the kernel knows the group.
        id: u64,
    },
}

/// The names of network interfaces.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum InterfacePattern {
    /// One name.
    Name(String),
    /// All names that begin like this; `nft` writes `"veth*"`.
    Prefix(String),
}

/// A new value of the scratch register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewPriority {
    /// `none`.
    None,
    /// `KEY map @MAP`. The rule ends if the map lacks the key.
    Map(Lookup),
    /// `meta priority & MASK`.
    And(Handle),
    /// `meta priority | MASK`.
    Or(Handle),
}

/// Where the packet goes next.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// On to another chain, and back after its end.
    Jump(Name),
    /// On to another chain, without return.
    Goto(Name),
    /// On to its destination, past the other rules of the hook's chain.
    Accept,
    /// Nowhere.
    Drop,
}

impl Statement {
    /// Tells whether the statement names this set or chain.
    pub fn refers_to(&self, name: &Name) -> bool {
        match self {
            Self::InSet { lookup, .. }
            | Self::SetPriority(NewPriority::Map(lookup))
            | Self::Dnat(lookup)
            | Self::Update { lookup, .. } => lookup.set == *name,
            Self::PriorityVerdict { map, .. } => map == name,
            Self::Verdict(verdict) => verdict.chain() == Some(name),
            Self::Match(_)
            | Self::SetPriority(_)
            | Self::SetMark { .. }
            | Self::Tproxy(_)
            | Self::Redirect(_)
            | Self::Masquerade
            | Self::Reject => false,
        }
    }
}

impl Verdict {
    /// Returns the chain that the packet goes to.
    pub fn chain(&self) -> Option<&Name> {
        match self {
            Self::Jump(chain) | Self::Goto(chain) => Some(chain),
            Self::Accept | Self::Drop => None,
        }
    }
}
