//! The listener on the loopback: TLS, HTTP/1.1 and HTTP/2, with a bound on everything that a caller could take
//! his time for or send too much of.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use isp_runtime::shutdown::Shutdown;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::debug;

use crate::proxy::Proxy;

/// kube-proxy has a few; more wait until one of these ends.
const MOST_CONNECTIONS: usize = 64;
const MOST_STREAMS: u32 = 128;
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
const LARGEST_HEADERS: u32 = 64 * 1024;
/// A client that does not answer this long is gone; its watches end.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

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
                    tokio::time::sleep(Duration::from_millis(50)).await;
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
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(LARGEST_HEADERS as usize)
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(LARGEST_HEADERS)
        .max_concurrent_streams(MOST_STREAMS)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT);
    let service = service_fn(move |request| {
        let proxy = proxy.clone();
        async move { Ok::<_, std::convert::Infallible>(proxy.serve(request).await) }
    });
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        debug!(error = %error, "a connection ended early");
    }
}
