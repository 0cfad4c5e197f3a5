//! The admin server: liveness, readiness and metrics over HTTP/1.1.
//!
//! It may be reachable from the whole node or beyond, and it has no authentication. So a connection
//! serves one request without a body, and all resources that a peer can use are bounded. Peers that
//! hold connections open are evicted in favour of new ones, so they cannot starve the kubelet's
//! probes. `answer` builds the responses; this module handles connections and shutdown.

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

/// Maximum size of a request's head.
const LARGEST_HEAD: usize = 16 * 1024;

/// Resource limits for peers.
#[derive(Debug, Clone, Copy)]
struct Limits {
    door: DoorLimits,
    /// From the start of a connection to the last byte of the response.
    request: Duration,
    /// How long responses in progress may delay the shutdown.
    grace: Duration,
}

/// At the full rate each caller has 1/8 s, and a kubelet behind 200 other callers waits less than
/// 1/2 s.
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
    /// An error for this address.
    pub fn new(address: SocketAddr, source: io::Error) -> Self {
        Self { address, source }
    }
}

/// An open socket. Callers queue in it until it is served.
#[derive(Debug)]
pub struct Admin {
    listener: TcpListener,
    address: SocketAddr,
    limits: Limits,
}

impl Admin {
    /// Opens the socket. With port 0 the kernel chooses the port.
    pub async fn bind(address: SocketAddr) -> Result<Self, AdminError> {
        let failed = |source| AdminError { address, source };
        Self::on(bind(address).await.map_err(failed)?).map_err(failed)
    }

    /// Uses an open socket.
    pub fn on(listener: TcpListener) -> io::Result<Self> {
        let address = listener.local_addr()?;
        Ok(Self { listener, address, limits: LIMITS })
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until shutdown, then lets responses in progress finish.
    pub async fn serve(
        self,
        registry: Arc<Registry>,
        readiness: Readiness,
        health: Health,
        shutdown: Shutdown,
    ) {
        self.serve_pages(Pages { registry, program: Some((readiness, health)) }, shutdown).await;
    }

    /// Like [`Self::serve`], but only `/metrics`, for networks where anyone can connect.
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

/// Serves the single request of a connection. Errors are ignored: they concern only the peer.
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
