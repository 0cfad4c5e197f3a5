//! Sends one UDP request from its own port. Only a datagram from the requested address counts as
//! the answer.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::UdpSocket;

use super::{Answered, answered, failure::Failure};

/// The largest possible datagram.
const LARGEST: usize = 65_535;

pub(super) async fn ask(address: SocketAddr, bind: Option<IpAddr>, seq: u64) -> Result<Answered, Failure> {
    let any = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let from = bind.unwrap_or(any);
    let socket = UdpSocket::bind(SocketAddr::new(from, 0))
        .await
        .map_err(|error| Failure::Bind(format!("{from}: {error}")))?;
    socket.connect(address).await?;
    socket.send(format!("ask {seq}").as_bytes()).await?;
    let mut buffer = vec![0; LARGEST];
    let length = socket.recv(&mut buffer).await?;
    Ok(answered(&buffer[..length]))
}
