//! The first packet of a connection, as a person describes it.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use thiserror::Error;

/// The transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Protocol {
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }
}

/// A packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// The transport protocol.
    pub protocol: Protocol,
    /// The source address; `None` is the pod's own.
    pub source: Option<IpAddr>,
    /// The destination address; `None` is the pod's own.
    pub destination: Option<IpAddr>,
    /// The destination port.
    pub port: u16,
    /// The process in the pod that sends it; `None` comes from elsewhere.
    pub sender: Option<Sender>,
}

/// A process in the pod.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sender {
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// The mark that it sets on its sockets.
    pub mark: u32,
}

/// Why a text is no packet.
#[derive(Debug, PartialEq, Eq, Error)]
#[error(
    "{part:?} is not valid: {expected}; write 'tcp 203.0.113.5 -> :8080' for a packet to the pod, or 'tcp uid 1000 -> \
     198.51.100.7:443' for a packet of the pod"
)]
pub struct PacketError {
    part: String,
    expected: &'static str,
}

fn wrong(part: &str, expected: &'static str) -> PacketError {
    PacketError { part: part.to_owned(), expected }
}

impl FromStr for Packet {
    type Err = PacketError;

    fn from_str(text: &str) -> Result<Self, PacketError> {
        let (from, to) = text.split_once("->").ok_or_else(|| wrong(text, "it has no ->"))?;
        let mut words = from.split_whitespace();
        let protocol = match words.next() {
            Some("tcp") => Protocol::Tcp,
            Some("udp") => Protocol::Udp,
            other => return Err(wrong(other.unwrap_or_default(), "a packet begins with tcp or udp")),
        };
        let (mut source, mut sender) = (None, None::<Sender>);
        while let Some(word) = words.next() {
            let mut number = || {
                let value = words.next().unwrap_or_default();
                parse_number(value).ok_or_else(|| wrong(value, "a number follows uid, gid and mark"))
            };
            match word {
                "uid" => sender.get_or_insert_default().uid = number()?,
                "gid" => sender.get_or_insert_default().gid = number()?,
                "mark" => sender.get_or_insert_default().mark = number()?,
                address => {
                    let parsed = address.parse::<IpAddr>().map_err(|_| {
                        wrong(address, "the source is an IP address, or uid, gid or mark with a number")
                    });
                    source = Some(parsed?);
                }
            }
        }
        let (destination, port) = destination(to.trim())?;
        // Without a source, somebody in the pod sends it.
        let sender = sender.or_else(|| source.is_none().then(Sender::default));
        if destination.zip(source).is_some_and(|(to, from)| to.is_ipv4() != from.is_ipv4()) {
            return Err(wrong(text, "source and destination are of different families"));
        }
        Ok(Self { protocol, source, destination, port, sender })
    }
}

fn parse_number(text: &str) -> Option<u32> {
    let hexadecimal = text.strip_prefix("0x").map(|digits| u32::from_str_radix(digits, 16).ok());
    hexadecimal.unwrap_or_else(|| text.parse().ok())
}

/// `:8080`, `10.0.0.1:80` or `[fd00::1]:80`.
fn destination(text: &str) -> Result<(Option<IpAddr>, u16), PacketError> {
    let (address, port) = text.rsplit_once(':').ok_or_else(|| wrong(text, "the destination has no port"))?;
    let port = port.parse().map_err(|_| wrong(port, "a port is a number up to 65535"))?;
    if address.is_empty() {
        return Ok((None, port));
    }
    let bare = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(address);
    let parsed = bare.parse().map_err(|_| {
        wrong(address, "the destination is an IP address and a port, or only a port of the pod")
    });
    parsed.map(|address| (Some(address), port))
}

impl fmt::Display for Packet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self.protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        })?;
        if let Some(source) = self.source {
            write!(out, " {source}")?;
        }
        if let Some(Sender { uid, gid, mark }) = self.sender {
            write!(out, " uid {uid} gid {gid}")?;
            if mark != 0 {
                write!(out, " mark {mark:#x}")?;
            }
        }
        match self.destination {
            Some(IpAddr::V6(address)) => write!(out, " -> [{address}]:{}", self.port),
            Some(address) => write!(out, " -> {address}:{}", self.port),
            None => write!(out, " -> :{}", self.port),
        }
    }
}

#[cfg(test)]
mod tests;
