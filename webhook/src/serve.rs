//! The server that API servers call: TLS, HTTP/1.1 and HTTP/2, with a bound on everything that a caller could take his time for or
//! send too much of. What is answered is the router's.
//!
//! The end has an order. When it is asked for the admin server stops answering, so the pod is no longer ready, but calls still come for
//! a moment: API servers learn of the pod's end through endpoints and kube-proxy. They are served as before for `linger`. Then nobody
//! is let in any more, and every connection is told to end with the requests that it has; what is left after `drain` is cut.

mod callers;
mod handler;
mod tls;

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use isp_runtime::connection::{Settings, accept, converse};
use isp_runtime::listen;
use isp_runtime::shutdown::Shutdown;
use rustls::ServerConfig;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

use self::handler::RequestHandler;
pub use self::tls::TlsError;
pub(crate) use self::tls::{Callers, tls};
use crate::metrics::{HandshakeFailure, Metrics};

/// What callers can use up.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Open at once; further callers wait in the kernel's queue, which is bounded.
    connections: u32,
    handshake: Duration,
    connection: Settings,
    /// From the head of a request to its answer.
    request: Duration,
    /// A review holds a pod twice, before and after, each of which may have one and a half megabytes.
    body: usize,
    /// How much of requests may be under way in all: each counts as one for every begun `PART` of its body.
    parts: u32,
    linger: Duration,
    drain: Duration,
}

const LIMITS: Limits = Limits {
    connections: 1024,
    handshake: Duration::from_secs(5),
    connection: Settings {
        streams: 256,
        headers: Duration::from_secs(10),
        largest_headers: 64 * 1024,
        largest_ahead: 256 * 1024,
        idle_look: Duration::from_secs(45),
    },
    request: Duration::from_secs(2),
    body: 8 * 1024 * 1024,
    parts: 256,
    linger: Duration::from_secs(2),
    drain: Duration::from_secs(5),
};

/// Why the webhook cannot serve.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ServeError {
    #[error("cannot listen on {address}: {source}; choose another address with --listen")]
    Listen { address: SocketAddr, source: io::Error },
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// An open socket: callers wait in it until it is served.
pub(crate) struct Server {
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    router: Router,
    metrics: Arc<Metrics>,
    limits: Limits,
}

impl Server {
    pub(crate) async fn bind(
        address: SocketAddr,
        tls: Arc<ServerConfig>,
        router: Router,
        metrics: Arc<Metrics>,
    ) -> Result<Self, ServeError> {
        let listener = listen::bind(address).await;
        let listener = listener.map_err(|source| ServeError::Listen { address, source })?;
        Ok(Self { listener, tls, router, metrics, limits: LIMITS })
    }

    /// Serves until shutdown, and lets requests in progress finish.
    pub(crate) async fn run(self, shutdown: Shutdown) {
        let Self { listener, tls, router, metrics, limits } = self;
        let acceptor = TlsAcceptor::from(tls);
        let handler = RequestHandler::new(router, limits);
        let free = Arc::new(Semaphore::new(limits.connections as usize));
        let draining = Shutdown::default();
        let mut end = pin!(async {
            shutdown.requested().await;
            sleep(limits.linger).await;
        });
        loop {
            let (stream, place) = tokio::select! {
                () = &mut end => break,
                accepted = accept(&listener, &free) => accepted,
            };
            let (handler, draining) = (handler.clone(), draining.clone());
            let (acceptor, metrics) = (acceptor.clone(), metrics.clone());
            tokio::spawn(async move {
                let (_place, _counted) = (place, metrics.connection());
                let stream = match timeout(limits.handshake, Box::pin(acceptor.accept(stream))).await {
                    Ok(Ok(stream)) => Box::new(stream),
                    Ok(Err(error)) => {
                        metrics.handshake_failed(HandshakeFailure::Refused);
                        return debug!(%error, "no TLS with a caller");
                    }
                    Err(_) => {
                        metrics.handshake_failed(HandshakeFailure::TimedOut);
                        return debug!("a caller did not finish its TLS handshake");
                    }
                };
                let speaks_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                converse(stream, speaks_http2, &limits.connection, &draining, |request, in_use| {
                    let answer = handler.clone().answer(request);
                    async move {
                        let answer = answer.await;
                        drop(in_use);
                        answer
                    }
                })
                .await;
            });
        }
        drop(listener);
        draining.request();
        if timeout(limits.drain, free.acquire_many(limits.connections)).await.is_err() {
            warn!("some connections have not ended in time and are cut");
        }
    }
}

#[cfg(test)]
mod tests;
