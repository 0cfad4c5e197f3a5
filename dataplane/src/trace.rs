//! The way of one packet, the first of its connection, through a ruleset.
//!
//! The interpreter walks the same values that the kernel gets, hook by hook, as the kernel's
//! network stack calls them. A random choice splits the story: each endpoint that may be chosen has
//! its own.

mod story;
mod walk;

use std::net::IpAddr;

use thiserror::Error;

use crate::{
    nft::{Name, Protocol},
    ruleset::Ruleset,
};

pub use story::{Outcome, Step, Story};
use walk::Walk;

/// The first packet of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The source address.
    pub source: IpAddr,
    /// The destination address.
    pub destination: IpAddr,
    /// The protocol.
    pub protocol: Protocol,
    /// The destination port.
    pub port: u16,
    /// The interface that it comes in by; packets of the node itself have none.
    pub interface: Option<String>,
}

/// A ruleset that cannot be followed.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Untraceable {
    /// A rule names a chain that does not exist.
    #[error("a rule leads to the chain {0}, which is not in the table")]
    NoChain(Name),
    /// A map has data of another kind than the rule needs.
    #[error("an element of {0} has data that the rule cannot use")]
    WrongData(Name),
    /// A rule depends on the process, the mark or the socket, which a [`Packet`] does not have.
    #[error("the trace cannot follow {0:?} in the chain {1}: a packet here has no process, mark or socket")]
    Unknown(String, Name),
    /// Chains lead to each other without end.
    #[error("the chains are nested too deeply at {0}")]
    TooDeep(Name),
}

/// Follows a packet. `addresses` are those of the node. All stories of the result are equally
/// likely; there is one, unless an endpoint is chosen at random.
pub fn trace(ruleset: &Ruleset, addresses: &[IpAddr], packet: &Packet) -> Result<Vec<Story>, Untraceable> {
    let (first, choices) = Walk::new(ruleset, addresses, packet, 0).run()?;
    let mut stories = vec![first];
    for choice in 1..choices {
        stories.push(Walk::new(ruleset, addresses, packet, choice).run()?.0);
    }
    Ok(stories)
}
