//! Opens dual-stack sockets for IPv6 wildcards, regardless of `net.ipv6.bindv6only`.

use std::{io, net::SocketAddr};

use socket2::{Domain, Socket, Type};
use tokio::net::TcpListener;

/// The listen backlog, for callers beyond the limit of open connections.
const BACKLOG: i32 = 1024;

pub(super) fn tcp(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let socket = bound(address, Type::STREAM)?;
    socket.listen(BACKLOG)?;
    let listener = TcpListener::from_std(socket.into())?;
    let local = listener.local_addr()?;
    Ok((listener, local))
}

/// A bound, non-blocking socket.
pub(super) fn bound(address: SocketAddr, kind: Type) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    if kind == Type::STREAM {
        // A restarted server must not wait for connections in TIME_WAIT.
        socket.set_reuse_address(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}
