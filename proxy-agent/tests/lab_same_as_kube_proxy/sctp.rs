//! The beginning of an SCTP association, over raw sockets: many kernels have no SCTP sockets, but
//! their NAT and connection tracking know the protocol. A client sends INIT; an endpoint answers
//! with INIT ACK and its text in the cookie.
//!
//! ICMP errors reach raw sockets by their addresses, not by ports, so they may concern another
//! connection. The client ignores them: a refused association looks like a dropped one.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};

use socket2::{Domain, Socket, Type};
use tokio::net::UdpSocket;

use crate::endpoints::{PORTS, answer};

const SCTP: i32 = 132;
const HEADER: usize = 12;
const INIT: u8 = 1;
const INIT_ACK: u8 = 2;
/// The fixed part of INIT and INIT ACK, with the head of the chunk.
const INIT_SIZE: u16 = 20;
/// The parameter of INIT ACK with the cookie.
const COOKIE: u16 = 7;
const PARAMETER_HEAD: u16 = 4;
const ATTEMPTS: usize = 3;

/// A packet with one chunk.
struct Packet {
    from: u16,
    to: u16,
    chunk: u8,
    /// The tag by which the sender of INIT knows the answer.
    tag: u32,
    text: String,
}

impl Packet {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = [self.from.to_be_bytes(), self.to.to_be_bytes()].concat();
        let verification = if self.chunk == INIT { 0 } else { self.tag };
        bytes.extend(verification.to_be_bytes());
        // The checksum is computed with zeros in its place.
        bytes.extend([0; 4]);
        let text = u16::try_from(self.text.len()).unwrap();
        let cookie = if self.chunk == INIT_ACK { PARAMETER_HEAD + text } else { 0 };
        bytes.extend([self.chunk, 0]);
        bytes.extend((INIT_SIZE + cookie).to_be_bytes());
        bytes.extend(self.tag.to_be_bytes());
        // Window, streams out and in, first sequence number.
        bytes.extend([0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1]);
        if self.chunk == INIT_ACK {
            bytes.extend([COOKIE.to_be_bytes(), cookie.to_be_bytes()].concat());
            bytes.extend(self.text.as_bytes());
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        let checksum = crc32c(&bytes);
        bytes[8..HEADER].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let short = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let long = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let text = HEADER + usize::from(INIT_SIZE + PARAMETER_HEAD);
        let end = HEADER + usize::from(short(HEADER + 2)?);
        Some(Self {
            from: short(0)?,
            to: short(2)?,
            chunk: *bytes.get(HEADER)?,
            tag: long(HEADER + 4)?,
            text: String::from_utf8_lossy(bytes.get(text..end).unwrap_or_default()).into_owned(),
        })
    }
}

/// CRC-32C, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

/// A raw socket with an address. It has the calls of a UDP socket, and tokio has no type of its own
/// for it.
fn bind(address: IpAddr) -> io::Result<UdpSocket> {
    let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let socket = Socket::new(domain, Type::RAW, Some(SCTP.into()))?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::new(address, 0).into())?;
    UdpSocket::from_std(socket.into())
}

/// The next packet and its sender.
async fn receive(socket: &UdpSocket) -> io::Result<(Option<Packet>, IpAddr)> {
    let mut buffer = [0; 512];
    let (length, sender) = socket.recv_from(&mut buffer).await?;
    // Over IPv4, the packet begins with its IP header.
    let header = if sender.is_ipv4() { usize::from(buffer[0] & 0xf) * 4 } else { 0 };
    Ok((buffer.get(header..length).and_then(Packet::decode), sender.ip()))
}

/// An endpoint.
pub(crate) async fn serve(address: IpAddr) {
    let socket = bind(address).unwrap();
    loop {
        // An error is the ICMP answer to an earlier packet.
        let Ok((Some(init), peer)) = receive(&socket).await else { continue };
        if init.chunk != INIT || !PORTS.contains(&init.to) {
            continue;
        }
        let text = answer(SocketAddr::new(address, init.to), peer);
        let reply = Packet { from: init.to, to: init.from, chunk: INIT_ACK, tag: init.tag, text };
        let _ = socket.send_to(&reply.encode(), SocketAddr::new(peer, 0)).await;
    }
}

/// A client: returns the text of the endpoint.
pub(crate) async fn ask(source: IpAddr, destination: SocketAddr) -> io::Result<String> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let from = 20_000 + NEXT.fetch_add(1, Ordering::Relaxed) % 40_000;
    let socket = bind(source)?;
    socket.connect(SocketAddr::new(destination.ip(), 0)).await?;
    let init =
        Packet { from, to: destination.port(), chunk: INIT, tag: u32::from(from), text: String::new() };
    // Instead of sending, the kernel may tell an error of another connection.
    for _ in 0..ATTEMPTS {
        if socket.send(&init.encode()).await.is_ok() {
            break;
        }
    }
    loop {
        let Ok((Some(packet), _)) = receive(&socket).await else { continue };
        if (packet.chunk, packet.from, packet.to) == (INIT_ACK, destination.port(), from) {
            return Ok(packet.text);
        }
    }
}
