//! The admin server: whether a program lives, whether it is ready, and its metrics, over HTTP/1.1.
//!
//! It may be reachable from the whole node or more and asks nobody who they are, so it gives little: a connection
//! is one request without a body, and all that a peer can use up is bounded. Peers that hold their connections make room for the
//! next one, so that they cannot make a kubelet believe that the program is dead. `answer` is what is said; connections
//! and their end are here.

mod answer;

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use prometheus_client::registry::Registry;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
};
use tracing::info;

use self::answer::Pages;
use crate::{
    connection::{Door, DoorLimits},
    health::Health,
    listen::bind,
    readiness::Readiness,
    shutdown::Shutdown,
};

/// The most that is read of a request's head.
const LARGEST_HEAD: usize = 16 * 1024;

/// What peers can use up.
#[derive(Debug, Clone, Copy)]
struct Limits {
    door: DoorLimits,
    /// From a connection's start to the last byte of the answer.
    request: Duration,
    /// How long the answers in progress may hold up the end.
    grace: Duration,
}

/// At the full rate each caller has an eighth of a second, and a kubelet that comes behind two hundred others waits for less than half a
/// second.
const LIMITS: Limits = Limits {
    door: DoorLimits { places: 64, per_second: 500 },
    request: Duration::from_secs(5),
    grace: Duration::from_secs(1),
};

/// Why the admin server could not start.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot serve health and metrics on {address}: {source}; choose an address of this host and a free port"
)]
pub struct AdminError {
    address: SocketAddr,
    source: io::Error,
}

impl AdminError {
    /// That it is this address, and why.
    pub fn new(address: SocketAddr, source: io::Error) -> Self {
        Self { address, source }
    }
}

/// An open socket: callers wait in it until it is served.
#[derive(Debug)]
pub struct Admin {
    listener: TcpListener,
    address: SocketAddr,
    limits: Limits,
}

impl Admin {
    /// Opens the socket. Port 0 lets the kernel choose.
    pub async fn bind(address: SocketAddr) -> Result<Self, AdminError> {
        let failed = |source| AdminError { address, source };
        Self::on(bind(address).await.map_err(failed)?).map_err(failed)
    }

    /// Takes a socket that is open.
    pub fn on(listener: TcpListener) -> io::Result<Self> {
        let address = listener.local_addr()?;
        Ok(Self { listener, address, limits: LIMITS })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until the end is asked for, and lets answers in progress finish.
    pub async fn serve(
        self,
        registry: Arc<Registry>,
        readiness: Readiness,
        health: Health,
        shutdown: Shutdown,
    ) {
        self.serve_pages(Pages { registry, program: Some((readiness, health)) }, shutdown).await;
    }

    /// The same with the metrics alone, for networks in which anybody may ask.
    pub async fn serve_metrics(self, registry: Arc<Registry>, shutdown: Shutdown) {
        self.serve_pages(Pages { registry, program: None }, shutdown).await;
    }

    async fn serve_pages(self, pages: Pages, shutdown: Shutdown) {
        let Self { listener, address, limits } = self;
        info!(%address, "admin: listening");
        let (pages, mut door, mut open) = (Arc::new(pages), Door::new(listener, limits.door), JoinSet::new());
        loop {
            tokio::select! {
                () = shutdown.requested() => break,
                Some(_) = open.join_next() => {}
                (stream, mut place) = door.next() => {
                    let conversation = timeout(limits.request, converse(stream, pages.clone()));
                    open.spawn(async move {
                        place.keep(conversation).await;
                    });
                }
            }
        }
        drop(door);
        timeout(limits.grace, async { while open.join_next().await.is_some() {} }).await.ok();
    }
}

/// Answers the one request of a connection. A peer that misbehaves or leaves has nobody to tell.
async fn converse(stream: TcpStream, pages: Arc<Pages>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let reply = pages.answer(request.method(), request.uri().path());
        async { Ok::<_, Infallible>(reply) }
    });
    let mut builder = http1::Builder::new();
    builder.keep_alive(false).max_buf_size(LARGEST_HEAD);
    builder.serve_connection(TokioIo::new(stream), service).await.ok();
}

#[cfg(test)]
mod tests;
