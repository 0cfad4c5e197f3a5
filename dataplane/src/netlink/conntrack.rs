//! Connections that the kernel tracks: requests that list and delete them, and their decoding.
//!
//! A connection has two tuples: the packets of its client, and the packets that answer. After DNAT,
//! the answers come from the endpoint.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::attributes::{Attribute, Attributes, Malformed, Writer};
use super::message::{self, Head, Message, flag};
use super::nf_tables::family;

const SUBSYSTEM: u16 = 1 << 8;
const NEW: u16 = SUBSYSTEM;
const GET: u16 = SUBSYSTEM | 1;
const DELETE: u16 = SUBSYSTEM | 2;

/// `CTA_*`.
mod entry {
    pub(super) const ORIGINAL: u16 = 1;
    pub(super) const REPLY: u16 = 2;
    pub(super) const ID: u16 = 12;
    pub(super) const ZONE: u16 = 18;
    pub(super) const FILTER: u16 = 25;
}

/// `CTA_TUPLE_*`.
mod tuple {
    pub(super) const ADDRESSES: u16 = 1;
    pub(super) const PROTOCOL: u16 = 2;
}

/// `CTA_IP_*`.
mod address {
    pub(super) const SOURCE_V4: u16 = 1;
    pub(super) const DESTINATION_V4: u16 = 2;
    pub(super) const SOURCE_V6: u16 = 3;
    pub(super) const DESTINATION_V6: u16 = 4;
}

/// `CTA_PROTO_*`.
mod protocol {
    pub(super) const NUMBER: u16 = 1;
    pub(super) const SOURCE: u16 = 2;
    pub(super) const DESTINATION: u16 = 3;
}

/// `CTA_FILTER_*`.
mod filter {
    pub(super) const ORIGINAL_FLAGS: u16 = 1;
    pub(super) const REPLY_FLAGS: u16 = 2;
    pub(super) const F_PROTOCOL: u32 = 1 << 3;
}

/// Where packets of one direction come from and go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tuple {
    /// The source of the packets.
    pub source: SocketAddr,
    /// Their destination.
    pub destination: SocketAddr,
    /// The number of the transport protocol, such as 17 for UDP.
    pub protocol: u8,
}

/// A tracked connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// The packets of the client, before NAT.
    pub original: Tuple,
    /// The packets that answer, before NAT is undone.
    pub reply: Tuple,
    /// The kernel's number of the connection, so that a delete does not hit a later one of the same
    /// addresses.
    id: u32,
    zone: Option<u16>,
}

/// A request for all connections of a family with a protocol. Kernels before 5.8 ignore the
/// protocol.
pub fn dump(out: &mut Vec<u8>, sequence: u32, address: Family, with: u8) {
    let head = Head { flags: flag::REQUEST | flag::DUMP, ..head(GET, sequence, address) };
    message::write(out, head, |out| {
        out.nest(entry::ORIGINAL, |out| {
            out.nest(tuple::PROTOCOL, |out| out.byte(protocol::NUMBER, with));
        });
        out.nest(entry::FILTER, |out| {
            out.bytes(filter::ORIGINAL_FLAGS, &filter::F_PROTOCOL.to_ne_bytes());
            out.bytes(filter::REPLY_FLAGS, &0_u32.to_ne_bytes());
        });
    });
}

/// A request to delete one connection.
pub fn delete(out: &mut Vec<u8>, sequence: u32, flow: &Flow) {
    let address = if flow.original.source.is_ipv4() { Family::V4 } else { Family::V6 };
    let head = Head { flags: flag::REQUEST | flag::ACK, ..head(DELETE, sequence, address) };
    message::write(out, head, |out| {
        out.nest(entry::ORIGINAL, |out| flow.original.write(out));
        out.be32(entry::ID, flow.id);
        if let Some(zone) = flow.zone {
            out.be16(entry::ZONE, zone);
        }
    });
}

/// The family of the addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

fn head(kind: u16, sequence: u32, address: Family) -> Head {
    let family = match address {
        Family::V4 => family::IPV4,
        Family::V6 => family::IPV6,
    };
    Head { kind, flags: 0, sequence, family, resource: 0 }
}

impl Flow {
    /// Reads a message of a dump. Connections of protocols without ports are `None`.
    pub fn read(message: Message<'_>) -> Result<Option<Self>, Malformed> {
        if message.kind != NEW {
            return Ok(None);
        }
        let attributes = message.attributes()?;
        let original = Tuple::read(attributes.require(entry::ORIGINAL)?.nested())?;
        let reply = Tuple::read(attributes.require(entry::REPLY)?.nested())?;
        let id = attributes.require(entry::ID)?.be32()?;
        let zone = attributes.find(entry::ZONE)?.map(Attribute::be16).transpose()?;
        Ok(original.zip(reply).map(|(original, reply)| Self { original, reply, id, zone }))
    }
}

impl Tuple {
    fn write(&self, out: &mut Writer<'_>) {
        out.nest(tuple::ADDRESSES, |out| {
            for (address, v4, v6) in [
                (self.source.ip(), address::SOURCE_V4, address::SOURCE_V6),
                (self.destination.ip(), address::DESTINATION_V4, address::DESTINATION_V6),
            ] {
                match address {
                    IpAddr::V4(address) => out.bytes(v4, &address.octets()),
                    IpAddr::V6(address) => out.bytes(v6, &address.octets()),
                }
            }
        });
        out.nest(tuple::PROTOCOL, |out| {
            out.byte(protocol::NUMBER, self.protocol);
            out.be16(protocol::SOURCE, self.source.port());
            out.be16(protocol::DESTINATION, self.destination.port());
        });
    }

    fn read(attributes: Attributes<'_>) -> Result<Option<Self>, Malformed> {
        let addresses = attributes.require(tuple::ADDRESSES)?.nested();
        let ports = attributes.require(tuple::PROTOCOL)?.nested();
        let port = |kind| ports.find(kind)?.map(Attribute::be16).transpose();
        let (source, destination) = (port(protocol::SOURCE)?, port(protocol::DESTINATION)?);
        let Some((source, destination)) = source.zip(destination) else { return Ok(None) };
        Ok(Some(Self {
            source: SocketAddr::new(ip(addresses, address::SOURCE_V4, address::SOURCE_V6)?, source),
            destination: SocketAddr::new(
                ip(addresses, address::DESTINATION_V4, address::DESTINATION_V6)?,
                destination,
            ),
            protocol: ports.require(protocol::NUMBER)?.byte()?,
        }))
    }
}

fn ip(attributes: Attributes<'_>, v4: u16, v6: u16) -> Result<IpAddr, Malformed> {
    if let Some(found) = attributes.find(v4)? {
        return found.be32().map(|bits| Ipv4Addr::from_bits(bits).into());
    }
    let found = attributes.require(v6)?;
    let octets: [u8; 16] = found.value.try_into().map_err(|_| Malformed::Length {
        kind: v6,
        found: found.value.len(),
        expected: 16,
    })?;
    Ok(Ipv6Addr::from(octets).into())
}

#[cfg(test)]
mod tests;
