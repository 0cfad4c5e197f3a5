//! Server connections: HTTP/1.1 and HTTP/2 with limits on time and size of everything a caller
//! sends, and an idle timeout.

use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use tracing::debug;

use self::requests::Requests;
use crate::shutdown::Shutdown;

mod door;
mod requests;

pub use self::door::{Door, DoorLimits, Place};

/// Send buffer per response. Beyond it, backpressure applies to the source.
const SEND_BUFFER: usize = 64 * 1024;
/// A caller that does not answer a ping within the timeout is gone.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// Delay after a failed accept: it lacks file descriptors or memory, which only time can fix.
const PAUSE: Duration = Duration::from_millis(50);

/// Settings that differ between servers.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Maximum concurrent requests per HTTP/2 connection.
    pub streams: u32,
    /// Time limit for the head of an HTTP/1.1 request.
    pub headers: Duration,
    /// Maximum size of a request's head, in bytes.
    pub largest_headers: u32,
    /// HTTP/2 flow-control window in bytes, per stream and per connection.
    pub largest_ahead: u32,
    /// Interval of the idle check. A connection that is idle at two consecutive checks is asked to
    /// close; at the third it is cut.
    pub idle_look: Duration,
}

/// Accepts the next connection. It acquires a place first, so that callers wait in the kernel's
/// bounded accept queue.
pub async fn accept(listener: &TcpListener, free: &Arc<Semaphore>) -> (TcpStream, OwnedSemaphorePermit) {
    loop {
        match try_accept(listener, free).await {
            Ok(accepted) => return accepted,
            Err(error) => {
                debug!(%error, "a connection could not be accepted");
                sleep(PAUSE).await;
            }
        }
    }
}

async fn try_accept(
    listener: &TcpListener,
    free: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let place = free.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, place))
}

/// Usage counters of a connection.
#[derive(Debug, Default)]
struct Usage {
    begun: AtomicU64,
    under_way: AtomicU64,
}

/// Guard held while a request is in flight.
#[derive(Debug)]
pub struct InUse(Arc<Usage>);

impl InUse {
    fn new(usage: Arc<Usage>) -> Self {
        usage.begun.fetch_add(1, Ordering::Relaxed);
        usage.under_way.fetch_add(1, Ordering::Relaxed);
        Self(usage)
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Usage {
    /// Whether no request is in flight and none has started since the last call with `seen`.
    fn is_idle_since(&self, seen: &mut u64) -> bool {
        let before = std::mem::replace(seen, self.begun.load(Ordering::Relaxed));
        *seen == before && self.under_way.load(Ordering::Relaxed) == 0
    }
}

/// Serves a connection until the caller closes it, it is idle, or `draining` is requested. Requests
/// in flight are still answered.
pub async fn converse<I, A, F, B>(
    stream: I,
    speaks_http2: bool,
    settings: &Settings,
    draining: &Shutdown,
    answer: A,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    A: Fn(Request<Incoming>, InUse) -> F,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Error: Into<Box<dyn Error + Send + Sync>>, Data: Send> + Send + 'static,
{
    let usage = Arc::new(Usage::default());
    let service = service_fn(|request| {
        let answer = answer(request, InUse::new(usage.clone()));
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let stream = TokioIo::new(stream);
    let requests = Requests::default();
    if speaks_http2 {
        let mut builder = http2::Builder::new(requests.begin());
        builder
            .timer(TokioTimer::new())
            // A new date per response would fill the connection's HPACK table, and no caller of
            // these servers reads it.
            .auto_date_header(false)
            .max_header_list_size(settings.largest_headers)
            .max_concurrent_streams(settings.streams)
            .initial_stream_window_size(settings.largest_ahead)
            .initial_connection_window_size(settings.largest_ahead)
            .max_send_buf_size(SEND_BUFFER)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT);
        let connection = Box::pin(builder.serve_connection(stream, service));
        attend(connection, requests, &usage, settings, draining).await;
    } else {
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(settings.headers)
            .max_buf_size(settings.largest_headers as usize);
        let connection = Box::pin(builder.serve_connection(stream, service));
        attend(connection, requests, &usage, settings, draining).await;
    }
}

/// Drives a connection. It is boxed because a future reserves space for every value that it moves,
/// and there are many tasks.
async fn attend<C>(
    mut connection: Pin<Box<C>>,
    mut requests: Requests,
    usage: &Usage,
    settings: &Settings,
    draining: &Shutdown,
) where
    C: GracefulConnection<Error = hyper::Error>,
{
    let (mut seen, mut idle_looks, mut told) = (0, 0, false);
    while idle_looks < 3 {
        tokio::select! {
            // Poll the connection first, so that requests it has just read proceed at once.
            biased;
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    debug!(%error, "a connection ended early");
                }
                return;
            }
            never = poll_fn(|context| requests.poll(context)) => match never {},
            () = draining.requested(), if !told => {
                told = true;
                connection.as_mut().graceful_shutdown();
            }
            () = sleep(settings.idle_look) => {
                idle_looks = if usage.is_idle_since(&mut seen) { idle_looks + 1 } else { 0 };
                if idle_looks == 2 {
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
    debug!("closing a connection without a request");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_idle_when_nothing_is_under_way_and_nothing_was_meanwhile() {
        let usage = Arc::new(Usage::default());
        let mut seen = 0;
        assert!(usage.is_idle_since(&mut seen));
        let request = InUse::new(usage.clone());
        assert!(!usage.is_idle_since(&mut seen), "one has begun");
        assert!(!usage.is_idle_since(&mut seen), "it is still under way");
        drop(request);
        assert!(usage.is_idle_since(&mut seen));
        drop(InUse::new(usage.clone()));
        assert!(!usage.is_idle_since(&mut seen), "one came and went between two looks");
        assert!(usage.is_idle_since(&mut seen));
    }
}
