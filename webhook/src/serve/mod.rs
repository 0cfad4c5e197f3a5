//! The server that API servers call: TLS, HTTP/1.1 and HTTP/2, with a bound on everything that a caller could take his time for or
//! send too much of. What is answered is the router's.
//!
//! The end has an order. When it is asked for the admin server stops answering, so the pod is no longer ready, but calls still come for
//! a moment: API servers learn of the pod's end through endpoints and kube-proxy. They are served as before for `linger`. Then nobody
//! is let in any more, and every connection is told to end with the requests that it has; what is left after `drain` is cut.

mod answer;
mod tls;

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use isp_runtime::shutdown::Shutdown;
use rustls::ServerConfig;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::{debug, warn};

use self::answer::Desk;
pub use self::tls::TlsError;
pub(crate) use self::tls::tls;
use crate::metrics::{HandshakeFailure, Metrics};

const LARGEST_HEADERS: u32 = 64 * 1024;
/// What a caller may send ahead, for a request and in all.
const LARGEST_AHEAD: u32 = 256 * 1024;
const MOST_STREAMS: u32 = 256;
/// A caller that does not answer this long is gone.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// Accepting fails for lack of files or memory, which only waiting can mend.
const PAUSE: Duration = Duration::from_millis(50);

/// What callers can use up.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Open at once; further callers wait in the kernel's queue, which is bounded.
    connections: u32,
    handshake: Duration,
    /// For the head of a request over HTTP/1.1.
    headers: Duration,
    /// From the head of a request to its answer.
    request: Duration,
    /// A review holds a pod twice, before and after, each of which may have one and a half megabytes.
    body: usize,
    /// How much of requests may be under way in all: each counts as one for every begun `PART` of its body.
    parts: u32,
    /// A connection without a request at two looks in a row is asked to end, and at the next one it is cut.
    idle_look: Duration,
    linger: Duration,
    drain: Duration,
}

const LIMITS: Limits = Limits {
    connections: 1024,
    handshake: Duration::from_secs(5),
    headers: Duration::from_secs(10),
    request: Duration::from_secs(2),
    body: 8 * 1024 * 1024,
    parts: 256,
    idle_look: Duration::from_secs(45),
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
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|source| ServeError::Listen { address, source })?;
        Ok(Self { listener, tls, router, metrics, limits: LIMITS })
    }

    /// Serves until shutdown, and lets requests in progress finish.
    pub(crate) async fn run(self, shutdown: Shutdown) {
        let Self { listener, tls, router, metrics, limits } = self;
        let acceptor = TlsAcceptor::from(tls);
        let desk = Desk::new(router, limits);
        let free = Arc::new(Semaphore::new(limits.connections as usize));
        let draining = Shutdown::default();
        let mut end = pin!(async {
            shutdown.requested().await;
            sleep(limits.linger).await;
        });
        loop {
            let (stream, place) = tokio::select! {
                () = &mut end => break,
                accepted = accept(&listener, &free) => match accepted {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        debug!(%error, "a connection could not be accepted");
                        sleep(PAUSE).await;
                        continue;
                    }
                },
            };
            let connection = Connection { desk: desk.clone(), draining: draining.clone(), limits };
            let (acceptor, metrics) = (acceptor.clone(), metrics.clone());
            tokio::spawn(async move {
                let (_place, _counted) = (place, metrics.connection());
                match timeout(limits.handshake, acceptor.accept(stream)).await {
                    Ok(Ok(stream)) => connection.converse(stream).await,
                    Ok(Err(error)) => {
                        metrics.handshake_failed(HandshakeFailure::Refused);
                        debug!(%error, "no TLS with a caller");
                    }
                    Err(_) => {
                        metrics.handshake_failed(HandshakeFailure::TimedOut);
                        debug!("a caller did not finish its TLS handshake");
                    }
                }
            });
        }
        drop(listener);
        draining.request();
        if timeout(limits.drain, free.acquire_many(limits.connections)).await.is_err() {
            warn!("some connections have not ended in time and are cut");
        }
    }
}

/// Waits for a free place first.
async fn accept(
    listener: &TcpListener,
    free: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let place = free.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, place))
}

struct Connection {
    desk: Desk,
    draining: Shutdown,
    limits: Limits,
}

impl Connection {
    async fn converse(self, stream: TlsStream<TcpStream>) {
        // Every request under way has one of these, and so has the service.
        let in_use = Arc::new(());
        let (desk, kept) = (self.desk.clone(), in_use.clone());
        let service = service_fn(move |request| {
            let (desk, kept) = (desk.clone(), kept.clone());
            async move {
                let answer = desk.answer(request).await;
                drop(kept);
                Ok::<_, std::convert::Infallible>(answer)
            }
        });
        let is_idle = || Arc::strong_count(&in_use) == 2;
        let speaks_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let stream = TokioIo::new(stream);
        if speaks_http2 {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder
                .timer(TokioTimer::new())
                .max_header_list_size(LARGEST_HEADERS)
                .max_concurrent_streams(MOST_STREAMS)
                .initial_stream_window_size(LARGEST_AHEAD)
                .initial_connection_window_size(LARGEST_AHEAD)
                .keep_alive_interval(PING_INTERVAL)
                .keep_alive_timeout(PING_TIMEOUT);
            self.attend(builder.serve_connection(stream, service), is_idle).await;
        } else {
            let mut builder = http1::Builder::new();
            builder
                .timer(TokioTimer::new())
                .header_read_timeout(self.limits.headers)
                .max_buf_size(LARGEST_HEADERS as usize);
            self.attend(builder.serve_connection(stream, service), is_idle).await;
        }
    }

    /// Carries a connection to its end, which comes when nobody uses it, or when the program ends.
    async fn attend<C>(&self, connection: C, is_idle: impl Fn() -> bool)
    where
        C: GracefulConnection<Error = hyper::Error>,
    {
        let mut connection = pin!(connection);
        let mut idle_looks = 0;
        let mut told = false;
        while idle_looks < 3 {
            tokio::select! {
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        debug!(%error, "a connection ended early");
                    }
                    return;
                }
                () = self.draining.requested(), if !told => {
                    told = true;
                    connection.as_mut().graceful_shutdown();
                }
                () = sleep(self.limits.idle_look) => {
                    idle_looks = if is_idle() { idle_looks + 1 } else { 0 };
                    if idle_looks == 2 {
                        connection.as_mut().graceful_shutdown();
                    }
                }
            }
        }
        debug!("a connection without a request is cut");
    }
}

#[cfg(test)]
mod tests;
