//! One connection, and how it ended for the client.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use isp_dataplane::model::Target;
use isp_dataplane::nft::Protocol;
use isp_lab::{Entrance, NetNs};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpSocket, UdpSocket};
use tokio::time::timeout;

use crate::clients::Client;
use crate::sctp;

/// Connections at once of one client.
const AT_ONCE: usize = 200;
/// The errors of Linux.
const EPERM: i32 = 1;
const EACCES: i32 = 13;
const EHOSTUNREACH: i32 = 113;

/// A connection to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Attempt {
    pub(crate) source: IpAddr,
    pub(crate) destination: SocketAddr,
    pub(crate) protocol: Protocol,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum End {
    /// An endpoint answered, and saw this address.
    Answered {
        /// The endpoint.
        by: Target,
        /// The client's address, as the endpoint saw it.
        seen: IpAddr,
    },
    /// It was refused.
    Refused,
    /// The router got the packet: no rule wanted it.
    Unclaimed,
    /// There was no answer in time, or the kernel did not let the packet out.
    Dropped,
    /// Something that no rule does.
    Failed(Option<i32>),
}

impl fmt::Display for End {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered { by, seen } => write!(out, "{by} sees {seen}"),
            Self::Refused => out.write_str("refused"),
            Self::Unclaimed => out.write_str("unclaimed"),
            Self::Dropped => out.write_str("dropped"),
            Self::Failed(error) => write!(out, "failed with errno {error:?}"),
        }
    }
}

/// Tries connections of one client, many at once, and returns their ends in the same order.
pub(crate) fn try_all(netns: &NetNs, client: Client, attempts: Vec<Attempt>, limit: Duration) -> Vec<End> {
    run_in(netns.entrance(client.place()).unwrap(), async move || {
        let tries = attempts
            .into_iter()
            .enumerate()
            .map(async |(place, attempt)| (place, connect(attempt, limit).await));
        let mut ends: Vec<(usize, End)> = stream::iter(tries).buffer_unordered(AT_ONCE).collect().await;
        ends.sort_unstable();
        ends.into_iter().map(|(_, end)| end).collect()
    })
}

/// Runs a job on a thread in a namespace, and waits for it.
pub(crate) fn run_in<T: Send + 'static>(
    entrance: Entrance,
    job: impl AsyncFnOnce() -> T + Send + 'static,
) -> T {
    let run = move || {
        entrance.enter().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(job())
    };
    thread::spawn(run).join().unwrap()
}

/// Connects, and waits for an answer at most as long as the limit.
pub(crate) async fn connect(attempt: Attempt, limit: Duration) -> End {
    let answer = async {
        match attempt.protocol {
            Protocol::Tcp => stream_of(attempt).await,
            Protocol::Udp => datagram(attempt).await,
            Protocol::Sctp => sctp::ask(attempt.source, attempt.destination).await,
        }
    };
    match timeout(limit, answer).await {
        Ok(Ok(text)) => parse(&text),
        Ok(Err(error)) => match (error.kind(), error.raw_os_error()) {
            (io::ErrorKind::ConnectionRefused, _) => End::Refused,
            (_, Some(EHOSTUNREACH | EACCES)) => End::Unclaimed,
            (_, Some(EPERM)) => End::Dropped,
            (_, errno) => End::Failed(errno),
        },
        Err(_) => End::Dropped,
    }
}

fn parse(text: &str) -> End {
    let Some((own, seen)) = text.split_once(' ') else { return End::Failed(None) };
    let (own, seen): (SocketAddr, IpAddr) = (own.parse().unwrap(), seen.parse().unwrap());
    End::Answered { by: Target { address: own.ip(), port: own.port() }, seen }
}

async fn stream_of(attempt: Attempt) -> io::Result<String> {
    let is_v4 = attempt.source.is_ipv4();
    let socket = if is_v4 { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.bind(SocketAddr::new(attempt.source, 0))?;
    let mut connection = socket.connect(attempt.destination).await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    Ok(answer)
}

async fn datagram(attempt: Attempt) -> io::Result<String> {
    let socket = UdpSocket::bind(SocketAddr::new(attempt.source, 0)).await?;
    socket.connect(attempt.destination).await?;
    if let Err(error) = socket.send(b"?").await {
        // Where a rule rejects a local datagram, `send` fails before the ICMP error is there.
        return Err(socket.take_error()?.unwrap_or(error));
    }
    let mut answer = [0; 128];
    let length = socket.recv(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
}

/// Several ends as text.
pub(crate) fn list(ends: &BTreeSet<End>) -> String {
    ends.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
