//! Which ports and destinations go where.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::Serialize;

use super::constants;
use crate::decode::PodRules;
use crate::packet::{Packet, Protocol};
use crate::rules::Field;
use crate::trace::{By, Outcome, trace};

/// Where connections go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "to", rename_all = "camelCase")]
pub enum Target {
    /// To the proxy.
    Proxy {
        /// The port that it listens on.
        port: u16,
        /// How.
        by: By,
    },
    /// Where they are addressed to.
    Direct,
    /// To another address.
    Elsewhere {
        /// The address.
        address: IpAddr,
        /// The port.
        port: u16,
    },
    /// Nowhere.
    Dropped,
    /// Nowhere, for lack of a route.
    NoRoute,
    /// It depends on something that is not known.
    Unclear {
        /// What it depends on.
        because: Vec<String>,
    },
}

impl Target {
    /// The target of a packet with this destination.
    pub(super) fn of(outcome: Outcome, destination: (IpAddr, u16)) -> Self {
        match outcome {
            Outcome::Delivered { by: By::Itself, .. } => Self::Direct,
            Outcome::Delivered { port, by } => Self::Proxy { port, by },
            Outcome::Leaves { address, port } if (address, port) == destination => Self::Direct,
            Outcome::Leaves { address, port } => Self::Elsewhere { address, port },
            Outcome::Dropped => Self::Dropped,
            Outcome::NoRoute => Self::NoRoute,
            Outcome::Unclear { because } => Self::Unclear { because },
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Proxy { port, by: By::Tproxy } => write!(out, "port {port} of the proxy, by TPROXY"),
            Self::Proxy { port, .. } => write!(out, "port {port} of the proxy, by REDIRECT"),
            Self::Direct => out.write_str("directly, past the proxy"),
            Self::Elsewhere { address, port } => {
                write!(out, "rewritten to {}", std::net::SocketAddr::new(*address, *port))
            }
            Self::Dropped => out.write_str("dropped"),
            Self::NoRoute => out.write_str("not sent, for lack of a route"),
            Self::Unclear { because } => write!(out, "unclear, it depends on {}", because.join(", ")),
        }
    }
}

/// Ports that go to the same target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ports {
    /// First and last port of each range.
    pub ranges: Vec<(u16, u16)>,
    /// The target.
    #[serde(flatten)]
    pub target: Target,
}

impl fmt::Display for Ports {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ranges == [(1, u16::MAX)] {
            return out.write_str("all ports");
        }
        let text = self
            .ranges
            .iter()
            .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") });
        out.write_str(&text.collect::<Vec<_>>().join(", "))
    }
}

/// A network that goes elsewhere than the rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Destination {
    /// First and last address, or a prefix.
    pub addresses: String,
    /// The target of its connections.
    #[serde(flatten)]
    pub target: Target,
}

/// Connections in one direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Traffic {
    /// TCP.
    pub tcp: Vec<Ports>,
    /// UDP.
    pub udp: Vec<Ports>,
    /// Destinations that are treated otherwise, for TCP.
    pub destinations: Vec<Destination>,
}

impl Traffic {
    /// Connections from elsewhere to the pod.
    pub(super) fn inbound(rules: &PodRules, own: IpAddr) -> Self {
        let packet = |protocol, port| Packet {
            protocol,
            source: Some(constants::client(own)),
            destination: Some(own),
            port,
            sender: None,
        };
        let [tcp, udp] =
            [Protocol::Tcp, Protocol::Udp].map(|protocol| by_port(rules, own, |port| packet(protocol, port)));
        Self { tcp, udp, destinations: Vec::new() }
    }

    /// Connections of an ordinary process of the pod to somebody elsewhere.
    pub(super) fn outbound(rules: &PodRules, own: IpAddr) -> Self {
        let sender = Some(constants::ordinary(rules, own));
        let packet = |protocol, destination, port| Packet {
            protocol,
            source: None,
            destination: Some(destination),
            port,
            sender,
        };
        let server = constants::server(own);
        let [tcp, udp] = [Protocol::Tcp, Protocol::Udp]
            .map(|protocol| by_port(rules, own, |port| packet(protocol, server, port)));
        // The port of most connections, so that it stands for the rest.
        let usual = tcp.iter().max_by_key(|ports| number(ports));
        let (port, rest) = usual.map_or((80, Target::Direct), |ports| {
            (ports.ranges.first().map_or(80, |(first, _)| *first), ports.target.clone())
        });
        let destinations = networks(rules, own).into_iter().filter_map(|(addresses, address)| {
            let target = target(rules, own, &packet(Protocol::Tcp, address, port));
            (target != rest).then_some(Destination { addresses, target })
        });
        let destinations = destinations.collect();
        Self { tcp, udp, destinations }
    }

    /// All targets.
    pub(super) fn targets(&self) -> impl Iterator<Item = &Target> {
        let ports = self.tcp.iter().chain(&self.udp).map(|ports| &ports.target);
        ports.chain(self.destinations.iter().map(|destination| &destination.target))
    }

    /// A port whose TCP connections go to the proxy.
    pub(super) fn redirected_port(&self) -> Option<u16> {
        let redirected = self.tcp.iter().filter(|ports| matches!(ports.target, Target::Proxy { .. }));
        // The range with the most ports, so that it is not one of the proxy's own.
        let ranges = redirected.flat_map(|ports| &ports.ranges);
        ranges.max_by_key(|(first, last)| last - first).map(|(first, _)| *first)
    }
}

fn number(ports: &Ports) -> u32 {
    ports.ranges.iter().map(|(first, last)| u32::from(last - first) + 1).sum()
}

/// The target of a packet.
pub(super) fn target(rules: &PodRules, own: IpAddr, packet: &Packet) -> Target {
    let outcome = trace(rules, &[own], packet).outcome;
    Target::of(outcome, (packet.destination.unwrap_or(own), packet.port))
}

/// Traces one packet for each range of ports that the rules distinguish.
fn by_port(rules: &PodRules, own: IpAddr, packet: impl Fn(u16) -> Packet) -> Vec<Ports> {
    let starts: Vec<u16> = constants::port_starts(rules, own).into_iter().collect();
    let mut found: Vec<Ports> = Vec::new();
    for (place, first) in starts.iter().enumerate() {
        let last = starts.get(place + 1).map_or(u16::MAX, |next| next - 1);
        let target = target(rules, own, &packet(*first));
        match found.iter_mut().find(|ports| ports.target == target) {
            Some(ports) => match ports.ranges.last_mut() {
                Some((_, end)) if *end + 1 == *first => *end = last,
                _ => ports.ranges.push((*first, last)),
            },
            None => found.push(Ports { ranges: vec![(*first, last)], target }),
        }
    }
    found
}

/// The networks that rules compare destinations with, and one address of each. The loopback has
/// none of its own: its packets do not leave the pod.
fn networks(rules: &PodRules, own: IpAddr) -> Vec<(String, IpAddr)> {
    let (field, bits) = match own {
        IpAddr::V4(_) => (Field::Destination4, 32),
        IpAddr::V6(_) => (Field::Destination6, 128),
    };
    let address = |number: u128| match own {
        IpAddr::V4(_) => u32::try_from(number).ok().map(|bits| IpAddr::from(Ipv4Addr::from_bits(bits))),
        IpAddr::V6(_) => Some(Ipv6Addr::from_bits(number).into()),
    };
    let found = constants::of(rules, own, field).into_iter().filter_map(|(mask, first, last)| {
        let (start, end) = (address(first)?, address(last)?);
        let is_usual = !start.is_loopback() && start != own && !rules.routing.is_local(start);
        let length = (mask << (128 - bits)).leading_ones().min(bits);
        let size = last - first;
        let name = if first == last && length < bits {
            format!("{start}/{length}")
        } else if first == last {
            start.to_string()
        } else if size.trailing_ones() == size.count_ones() && first & size == 0 {
            format!("{start}/{}", bits - size.count_ones())
        } else {
            format!("{start}-{end}")
        };
        is_usual.then_some((name, start))
    });
    found.collect()
}
