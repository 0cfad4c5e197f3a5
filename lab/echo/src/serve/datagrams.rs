//! A UDP socket that knows the local address a datagram was sent to, and answers from that address.
//!
//! A wildcard socket of the standard library can do neither: on a node with several addresses, the
//! answer could have another source IP than the address that was asked. Used by `udp` only.

use std::{
    io::{self, IoSlice, IoSliceMut},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::AsRawFd as _,
};

use nix::{
    cmsg_space, libc,
    sys::socket::{
        ControlMessage, ControlMessageOwned, MsgFlags, SockaddrLike as _, SockaddrStorage, recvmsg, sendmsg,
        setsockopt, sockopt,
    },
};
use socket2::Type;
use tokio::{io::Interest, net::UdpSocket};

use super::listen;

pub(super) struct Datagrams {
    socket: UdpSocket,
    bound: SocketAddr,
}

/// A received datagram without its content: length, peer and local address.
pub(super) struct Datagram {
    pub(super) length: usize,
    pub(super) peer: SocketAddr,
    pub(super) local: SocketAddr,
}

impl Datagrams {
    pub(super) fn bind(address: SocketAddr) -> io::Result<(Self, SocketAddr)> {
        let socket = listen::bound(address, Type::DGRAM)?;
        match address {
            SocketAddr::V4(_) => setsockopt(&socket, sockopt::Ipv4PacketInfo, &true)?,
            SocketAddr::V6(_) => setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true)?,
        }
        let socket = UdpSocket::from_std(socket.into())?;
        let bound = socket.local_addr()?;
        Ok((Self { socket, bound }, bound))
    }

    pub(super) async fn receive(&self, buffer: &mut [u8]) -> io::Result<Datagram> {
        self.socket.async_io(Interest::READABLE, || self.receive_now(buffer)).await
    }

    fn receive_now(&self, buffer: &mut [u8]) -> io::Result<Datagram> {
        let mut control = cmsg_space!(libc::in6_pktinfo, libc::in_pktinfo);
        let mut parts = [IoSliceMut::new(buffer)];
        let flags = MsgFlags::empty();
        let message =
            recvmsg::<SockaddrStorage>(self.socket.as_raw_fd(), &mut parts, Some(&mut control), flags)?;
        let peer = message
            .address
            .as_ref()
            .and_then(socket_address)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a datagram without a sender"))?;
        let sent_to = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::Ipv4PacketInfo(info) => Some(IpAddr::V4(from_in(info.ipi_addr))),
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                Some(IpAddr::V6(Ipv6Addr::from(info.ipi6_addr.s6_addr)))
            }
            _ => None,
        });
        let local = SocketAddr::new(sent_to.unwrap_or_else(|| self.bound.ip()), self.bound.port());
        Ok(Datagram { length: message.bytes, peer, local })
    }

    /// Sends an answer to the peer of a received datagram, from the address that the datagram was
    /// sent to.
    pub(super) async fn send(&self, bytes: &[u8], answered: &Datagram) -> io::Result<()> {
        self.socket.async_io(Interest::WRITABLE, || self.send_now(bytes, answered)).await
    }

    fn send_now(&self, bytes: &[u8], answered: &Datagram) -> io::Result<()> {
        let to = SockaddrStorage::from(answered.peer);
        let send = |from: &ControlMessage<'_>| {
            let parts = [IoSlice::new(bytes)];
            sendmsg(self.socket.as_raw_fd(), &parts, std::slice::from_ref(from), MsgFlags::empty(), Some(&to))
        };
        // Interface 0: routing chooses it, as for any other answer.
        match answered.local.ip() {
            IpAddr::V4(from) => send(&ControlMessage::Ipv4PacketInfo(&libc::in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: to_in(from),
                ipi_addr: to_in(Ipv4Addr::UNSPECIFIED),
            })),
            IpAddr::V6(from) => send(&ControlMessage::Ipv6PacketInfo(&libc::in6_pktinfo {
                ipi6_addr: libc::in6_addr { s6_addr: from.octets() },
                ipi6_ifindex: 0,
            })),
        }?;
        Ok(())
    }
}

fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    match address.family()? {
        nix::sys::socket::AddressFamily::Inet => address.as_sockaddr_in().map(|&v4| v4.into()),
        nix::sys::socket::AddressFamily::Inet6 => address.as_sockaddr_in6().map(|&v6| v6.into()),
        _ => None,
    }
}

fn from_in(address: libc::in_addr) -> Ipv4Addr {
    Ipv4Addr::from(u32::from_be(address.s_addr))
}

fn to_in(address: Ipv4Addr) -> libc::in_addr {
    libc::in_addr { s_addr: u32::from(address).to_be() }
}
