//! The listener on the loopback: TLS, HTTP/1.1 and HTTP/2, with a bound on everything that a caller could take
//! his time for or send too much of.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use isp_runtime::shutdown::Shutdown;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::debug;

use crate::proxy::Proxy;

/// kube-proxy has a few; more wait until one of these ends.
const MOST_CONNECTIONS: usize = 64;
const MOST_STREAMS: u32 = 64;
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
const LARGEST_HEADERS: u32 = 64 * 1024;
/// What a caller may send ahead, for an answer and in all; events are small.
const LARGEST_AHEAD: u32 = 256 * 1024;
/// What waits to be sent, for each answer. More waits in the API server.
const SEND_BUFFER: usize = 64 * 1024;
/// A client that does not answer this long is gone; its watches end.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection that was not used at two looks in a row is asked to end, and at the next one it is cut.
/// kube-proxy's always has one, and places are few.
const IDLE_LOOK: Duration = Duration::from_secs(10);

/// Serves until shutdown. Watches have no end of their own, so connections are then cut with the process; kube-proxy keeps its
/// rules and comes back.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    proxy: Arc<Proxy>,
    shutdown: Shutdown,
) {
    let acceptor = TlsAcceptor::from(tls);
    let free = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let (stream, place) = tokio::select! {
            () = shutdown.requested() => return,
            accepted = accept(&listener, &free) => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    debug!(%error, "a connection could not be accepted");
                    sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        let (acceptor, proxy) = (acceptor.clone(), proxy.clone());
        tokio::spawn(async move {
            let _place = place;
            match timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => converse(stream, proxy).await,
                Ok(Err(error)) => debug!(%error, "no TLS with a caller"),
                Err(_) => debug!("a caller did not finish its TLS handshake"),
            }
        });
    }
}

/// Waits for a free place first, so that callers wait in the kernel's queue, which is bounded.
async fn accept(
    listener: &TcpListener,
    free: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let place = free.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, place))
}

async fn converse(stream: TlsStream<TcpStream>, proxy: Arc<Proxy>) {
    let usage = Arc::new(Usage::default());
    let kept = usage.clone();
    let service = service_fn(move |request| {
        let (proxy, kept) = (proxy.clone(), kept.clone());
        kept.requests.fetch_add(1, Ordering::Relaxed);
        async move { Ok::<_, Infallible>(proxy.serve(request).await.map(|body| body.with(kept))) }
    });
    let mut seen = 0;
    let is_idle = || {
        let before = std::mem::replace(&mut seen, usage.requests.load(Ordering::Relaxed));
        seen == before && Arc::strong_count(&usage) == 2
    };
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
            .max_send_buf_size(SEND_BUFFER)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT);
        attend(builder.serve_connection(stream, service), is_idle).await;
    } else {
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIMEOUT)
            .max_buf_size(LARGEST_HEADERS as usize);
        attend(builder.serve_connection(stream, service), is_idle).await;
    }
}

/// How a connection is used. Every answer under way holds it, beside the service and the connection.
#[derive(Debug, Default)]
struct Usage {
    requests: AtomicU64,
}

/// Carries a connection to its end, which comes when nobody uses it.
async fn attend<C>(connection: C, mut is_idle: impl FnMut() -> bool)
where
    C: GracefulConnection<Error = hyper::Error>,
{
    let mut connection = pin!(connection);
    let mut idle_looks = 0;
    while idle_looks < 3 {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    debug!(%error, "a connection ended early");
                }
                return;
            }
            () = sleep(IDLE_LOOK) => {
                idle_looks = if is_idle() { idle_looks + 1 } else { 0 };
                if idle_looks == 2 {
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
    debug!("a connection without a request is cut");
}
