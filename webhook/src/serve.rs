//! The server for API servers: TLS, HTTP/1.1 and HTTP/2, with limits on time and size of everything
//! a caller sends. The router produces the responses.
//!
//! Shutdown has three phases. First the admin server stops, so the pod becomes unready, but calls
//! still arrive until API servers learn about it through endpoints and kube-proxy. These are served
//! as usual for `linger`. Then no connection is accepted any more, and open ones are told to finish
//! their requests. Connections left after `drain` are cut.

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

/// Resource limits for callers.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Maximum number of open connections. Further callers wait in the kernel's bounded accept
    /// queue.
    connections: u32,
    handshake: Duration,
    connection: Settings,
    /// From the head of a request to its response.
    request: Duration,
    /// Maximum body size. A review contains the object twice (old and new), each up to 1.5 MB.
    body: usize,
    /// Budget for all requests in flight. A request uses one part for each started `PART` of its
    /// body.
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
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum ServeError {
    #[error("cannot listen on {address}: {source}; choose another address with --listen")]
    Listen { address: SocketAddr, source: io::Error },
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// An open socket. Callers queue in it until it is served.
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

    /// Serves until shutdown, then lets requests in progress finish.
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
                        return debug!(%error, "the TLS handshake with a caller failed");
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
            warn!("closing connections that did not end in time");
        }
    }
}

#[cfg(test)]
mod tests;
