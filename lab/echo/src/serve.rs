//! The servers: opens the three sockets, serves until a signal ends the program, and lets requests
//! in progress finish.
//!
//! Called by `main`. Each protocol has a file. `connections` limits and drains the connections of
//! `http` and `tcp`.

mod connections;
mod datagrams;
mod http;
mod listen;
mod stop;
mod tcp;
mod udp;

use std::{
    io::Write as _,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use serde::Serialize;

use crate::{answer::Place, cli::Serve, signals::Signals};

/// Why the server could not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(
        "cannot listen on {address} for {protocol}: {source}; choose another port with --{protocol}, or another \
         address with --address (0.0.0.0 where the kernel has no IPv6)"
    )]
    Listen { protocol: &'static str, address: SocketAddr, source: std::io::Error },
    #[error("cannot print the addresses to stdout: {0}; keep stdout open")]
    Announce(#[source] std::io::Error),
}

/// The line on stdout with the addresses of all sockets, printed once they are open.
#[derive(Serialize)]
struct Listening {
    http: SocketAddr,
    tcp: SocketAddr,
    udp: SocketAddr,
}

/// Serves until a signal.
pub(crate) async fn run(options: &Serve, place: Place, signals: &mut Signals) -> Result<(), Error> {
    let http = open("http", options.address, options.http, listen::tcp)?;
    let tcp = open("tcp", options.address, options.tcp, listen::tcp)?;
    let udp = open("udp", options.address, options.udp, datagrams::Datagrams::bind)?;
    announce(&Listening { http: http.1, tcp: tcp.1, udp: udp.1 }).map_err(Error::Announce)?;

    let place = Arc::new(place);
    let (end, stop) = stop::channel();
    tokio::join!(
        connections::serve(http.0, stop.clone(), |connection| {
            http::converse(connection, Arc::clone(&place), options.access_log, stop.clone())
        }),
        connections::serve(tcp.0, stop.clone(), |connection| {
            tcp::converse(connection, Arc::clone(&place), stop.clone())
        }),
        udp::serve(&udp.0, &place, stop.clone()),
        async {
            signals.end().await;
            end.now();
        },
    );
    Ok(())
}

/// Opens a socket and returns its actual address.
fn open<S>(
    protocol: &'static str,
    ip: IpAddr,
    port: u16,
    bind: impl FnOnce(SocketAddr) -> std::io::Result<(S, SocketAddr)>,
) -> Result<(S, SocketAddr), Error> {
    let address = SocketAddr::new(ip, port);
    bind(address).map_err(|source| Error::Listen { protocol, address, source })
}

fn announce(listening: &Listening) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(&serde_json::json!({ "listening": listening }))?;
    line.push(b'\n');
    std::io::stdout().write_all(&line)
}
