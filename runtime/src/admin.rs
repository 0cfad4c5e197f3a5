//! The admin server: whether a program lives, whether it is ready, and its metrics, over HTTP/1.1.
//!
//! It may be reachable from the whole node or more and asks nobody who they are, so it gives little: a connection
//! is one request without a body, and all that a peer can use up is bounded. `answer` is what is said; connections
//! and their end are here.

mod answer;

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use prometheus_client::registry::Registry;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};
use tracing::{info, warn};

use crate::{connection::listen, readiness::Readiness, shutdown::Shutdown};

/// The most that is read of a request's head.
const LARGEST_HEAD: usize = 16 * 1024;

/// Accepting fails for lack of files or memory, which only waiting can mend.
const PAUSE: Duration = Duration::from_millis(50);

/// What peers can use up.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Connections open at once; further callers wait in the listener's backlog.
    connections: usize,
    /// From a connection's start to the last byte of the answer.
    request: Duration,
    /// How long the answers in progress may hold up the end.
    grace: Duration,
}

const LIMITS: Limits =
    Limits { connections: 32, request: Duration::from_secs(5), grace: Duration::from_secs(1) };

/// Why the admin server could not start.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot serve health and metrics on {address}: {source}; choose an address of this host and a free port"
)]
pub struct AdminError {
    address: SocketAddr,
    source: std::io::Error,
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
        let listener = listen(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, limits: LIMITS })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until the end is asked for, and lets answers in progress finish.
    pub async fn serve(self, registry: Arc<Registry>, readiness: Readiness, shutdown: Shutdown) {
        let Self { listener, address, limits } = self;
        info!(%address, "admin: listening");
        let mut open = JoinSet::new();
        let mut failing = false;
        loop {
            tokio::select! {
                () = shutdown.requested() => break,
                Some(_) = open.join_next() => {}
                accepted = listener.accept(), if open.len() < limits.connections => match accepted {
                    Ok((stream, _)) => {
                        failing = false;
                        let conversation = converse(stream, Arc::clone(&registry), readiness.clone());
                        open.spawn(timeout(limits.request, conversation));
                    }
                    Err(error) => {
                        if !failing {
                            warn!(%address, %error, "admin: cannot accept connections, trying on");
                        }
                        failing = true;
                        sleep(PAUSE).await;
                    }
                },
            }
        }
        drop(listener);
        timeout(limits.grace, async { while open.join_next().await.is_some() {} }).await.ok();
    }
}

/// Answers the one request of a connection. A peer that misbehaves or leaves has nobody to tell.
async fn converse(stream: TcpStream, registry: Arc<Registry>, readiness: Readiness) {
    let service = service_fn(move |request: Request<Incoming>| {
        let reply = answer::answer(request.method(), request.uri().path(), &registry, &readiness);
        async { Ok::<_, Infallible>(reply) }
    });
    let mut builder = http1::Builder::new();
    builder.keep_alive(false).max_buf_size(LARGEST_HEAD);
    builder.serve_connection(TokioIo::new(stream), service).await.ok();
}

#[cfg(test)]
mod tests;
