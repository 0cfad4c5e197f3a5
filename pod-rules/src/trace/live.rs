//! A packet on its way, and the fields that rules ask for.

use std::net::IpAddr;

use crate::packet::{Packet, Sender};
use crate::routing::Routing;
use crate::rules::{Assign, Field, MarkOf, Match, Side};

/// A port that clients use.
const CLIENT_PORT: u16 = 40_000;
const SYN: u8 = 0x02;
const SYN_ACK: u8 = 0x12;
/// Bits of the states of connections.
const NEW: u32 = 8;
const ESTABLISHED: u32 = 2;
/// `RTN_UNICAST` and `RTN_LOCAL`.
const UNICAST: u128 = 1;
const LOCAL: u128 = 2;
/// `NFPROTO_*`.
const IPV4: u128 = 2;
const IPV6: u128 = 10;

/// The connection that a packet belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Connection {
    /// It begins with this packet.
    First,
    /// The packet answers the first one; the connection has this mark.
    Answer {
        /// The mark.
        mark: u32,
    },
}

/// A packet on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Live {
    pub(crate) protocol: u8,
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) source_port: u16,
    pub(crate) port: u16,
    pub(crate) mark: u32,
    pub(crate) connection: Connection,
    pub(crate) connection_mark: u32,
    /// The process that sends it, until it leaves its socket.
    pub(crate) sender: Option<Sender>,
    pub(crate) input: Option<String>,
    pub(crate) output: Option<String>,
}

/// The result of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
    Unknown,
}

impl Live {
    /// The first packet of a connection.
    pub(crate) fn first(packet: &Packet, own: IpAddr) -> Self {
        Self {
            protocol: packet.protocol.number(),
            source: packet.source.unwrap_or(own),
            destination: packet.destination.unwrap_or(own),
            source_port: CLIENT_PORT,
            port: packet.port,
            mark: packet.sender.map_or(0, |sender| sender.mark),
            connection: Connection::First,
            connection_mark: 0,
            sender: packet.sender,
            input: None,
            output: None,
        }
    }

    /// The answer of a process to a first packet, in a connection with this mark.
    pub(crate) fn answer(first: &Self, connection_mark: u32, sender: Sender) -> Self {
        Self {
            source: first.destination,
            destination: first.source,
            source_port: first.port,
            port: first.source_port,
            mark: sender.mark,
            connection: Connection::Answer { mark: connection_mark },
            connection_mark,
            sender: Some(sender),
            ..first.clone()
        }
    }

    pub(super) fn is_first(&self) -> bool {
        self.connection == Connection::First
    }

    pub(super) fn assign(&mut self, assign: Assign) {
        let mark = |of| match of {
            MarkOf::Packet => self.mark,
            MarkOf::Connection => self.connection_mark,
        };
        let copied = assign.source.map_or(0, |(of, mask)| mark(of) & mask);
        let value = (mark(assign.target) & assign.keep) ^ copied ^ assign.value;
        match assign.target {
            MarkOf::Packet => self.mark = value,
            MarkOf::Connection => self.connection_mark = value,
        }
    }

    pub(super) fn matches(&self, test: &Match, routing: &Routing) -> Answer {
        match test {
            Match::Interface { side, name, prefix, negated } => {
                let interface = match side {
                    Side::Input => self.input.as_deref(),
                    Side::Output => self.output.as_deref(),
                };
                let interface = interface.unwrap_or_default();
                let found = if *prefix { interface.starts_with(name) } else { interface == name };
                yes(found != *negated)
            }
            Match::Number { field, mask, ranges, negated } => match self.value(*field, routing) {
                Value::Number(number) => {
                    let number = number & mask;
                    let found = ranges.iter().any(|(first, last)| (first..=last).contains(&&number));
                    yes(found != *negated)
                }
                // The kernel leaves the rule if there is no such field, whatever it is compared
                // with.
                Value::None => Answer::No,
                Value::Unknown => Answer::Unknown,
            },
        }
    }

    fn value(&self, field: Field, routing: &Routing) -> Value {
        let address = |address: IpAddr, wants_ipv6: bool| match address {
            IpAddr::V4(address) if !wants_ipv6 => Value::Number(address.to_bits().into()),
            IpAddr::V6(address) if wants_ipv6 => Value::Number(address.to_bits()),
            _ => Value::None,
        };
        let kind = |address: IpAddr| if routing.is_local(address) { LOCAL } else { UNICAST };
        let of_sender = |get: fn(Sender) -> u32| {
            self.sender.map_or(Value::None, |sender| Value::Number(get(sender).into()))
        };
        let number = match field {
            Field::Source4 => return address(self.source, false),
            Field::Destination4 => return address(self.destination, false),
            Field::Source6 => return address(self.source, true),
            Field::Destination6 => return address(self.destination, true),
            Field::User => return of_sender(|sender| sender.uid),
            Field::Group => return of_sender(|sender| sender.gid),
            Field::NetCls | Field::Cgroup => {
                return self.sender.map_or(Value::None, |_| Value::Unknown);
            }
            Field::TransparentSocket if !self.is_first() => return Value::Unknown,
            // No socket has a connection that is about to begin.
            Field::TransparentSocket => 0,
            Field::Family if self.destination.is_ipv6() => IPV6,
            Field::Family => IPV4,
            Field::Protocol => self.protocol.into(),
            Field::SourcePort => self.source_port.into(),
            Field::DestinationPort => self.port.into(),
            Field::TcpFlags => if self.is_first() { SYN } else { SYN_ACK }.into(),
            Field::Mark => self.mark.into(),
            Field::ConnectionMark => self.connection_mark.into(),
            Field::ConnectionState => if self.is_first() { NEW } else { ESTABLISHED }.into(),
            Field::Direction => u128::from(!self.is_first()),
            Field::SourceType => kind(self.source),
            Field::DestinationType => kind(self.destination),
        };
        Value::Number(number)
    }
}

/// What a packet has in a field.
enum Value {
    Number(u128),
    /// It has no such field.
    None,
    Unknown,
}

fn yes(yes: bool) -> Answer {
    if yes { Answer::Yes } else { Answer::No }
}
