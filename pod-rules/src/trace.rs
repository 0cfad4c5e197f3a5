//! The way of one packet through a pod's rules, hook by hook, as the kernel's network stack calls
//! them.
//!
//! Whatever cannot be decided (a statement that is not known, the control group of a process)
//! splits the way. If all ways end alike, that is the outcome; if not, the outcome is unclear, and
//! says why.

mod live;
mod walk;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::Serialize;

use crate::decode::PodRules;
use crate::packet::Packet;

pub(crate) use live::Live;
use walk::Walk;

/// So many ways are followed.
const WAYS: usize = 64;

/// The way of a packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trace {
    /// The rules that did something.
    pub steps: Vec<Step>,
    /// The end of the way.
    pub outcome: Outcome,
    /// The mark of the connection at the end.
    #[serde(skip)]
    pub(crate) connection_mark: u32,
}

/// A rule that did something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// The hook.
    pub hook: String,
    /// Family and name of the table.
    pub table: String,
    /// The chain.
    pub chain: String,
    /// The rule, in the words of `nft`.
    pub rule: String,
}

/// How a packet comes to a socket of the pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum By {
    /// Its destination was not changed.
    Itself,
    /// By REDIRECT or another rewrite of its destination.
    Redirect,
    /// By TPROXY.
    Tproxy,
}

/// The end of a packet's way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Outcome {
    /// A socket of the pod gets it.
    Delivered {
        /// The port of the socket.
        port: u16,
        /// How.
        by: By,
    },
    /// It leaves the pod.
    Leaves {
        /// The destination.
        address: IpAddr,
        /// The port.
        port: u16,
    },
    /// A rule drops it.
    Dropped,
    /// The pod has no route for it.
    NoRoute,
    /// It depends on something that is not known.
    Unclear {
        /// What it depends on.
        because: Vec<String>,
    },
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delivered { port, by: By::Itself } => write!(out, "delivered to port {port}, as addressed"),
            Self::Delivered { port, by: By::Redirect } => write!(out, "redirected to port {port} (REDIRECT)"),
            Self::Delivered { port, by: By::Tproxy } => write!(out, "handed to port {port} (TPROXY)"),
            Self::Leaves { address, port } => {
                write!(out, "leaves the pod for {}", std::net::SocketAddr::new(*address, *port))
            }
            Self::Dropped => out.write_str("dropped"),
            Self::NoRoute => out.write_str("not sent: the pod has no route"),
            Self::Unclear { because } => write!(out, "unclear: it depends on {}", because.join(", ")),
        }
    }
}

/// Follows a packet. `pod` are the addresses of the pod.
pub fn trace(rules: &PodRules, pod: &[IpAddr], packet: &Packet) -> Trace {
    let is_ipv6 = packet
        .destination
        .or(packet.source)
        .map_or_else(|| pod.first().is_some_and(IpAddr::is_ipv6), |address| address.is_ipv6());
    let any = || if is_ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let own = pod.iter().copied().find(|address| address.is_ipv6() == is_ipv6).unwrap_or_else(any);
    follow(rules, own, &Live::first(packet, own))
}

/// Follows a packet of a connection. `own` is the pod's address of its family.
pub(crate) fn follow(rules: &PodRules, own: IpAddr, start: &Live) -> Trace {
    let mut ways: Vec<Trace> = Vec::new();
    let mut because: Vec<String> = Vec::new();
    let mut scripts = vec![Vec::new()];
    while let Some(script) = scripts.pop() {
        let (way, choices) = Walk::new(rules, own, start.clone(), &script).run();
        // Every undecided statement has so far not matched: try the ways on which it does.
        for place in script.len()..choices.len() {
            let mut other: Vec<bool> = script.clone();
            other.resize(place, false);
            other.push(true);
            scripts.push(other);
        }
        because.extend(choices);
        ways.push(way);
        if ways.len() >= WAYS {
            break;
        }
    }
    because.sort();
    because.dedup();
    let is_clear = scripts.is_empty() && ways.iter().all(|way| way.outcome == ways[0].outcome);
    let mut first = ways.swap_remove(0);
    if !is_clear {
        first.outcome = Outcome::Unclear { because };
    }
    first
}

#[cfg(test)]
mod tests;
