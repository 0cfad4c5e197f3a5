//! The connections of a server: HTTP/1.1 and HTTP/2 with a bound on everything that a caller could take his time for or send
//! too much of, and an end for those that nobody uses.

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

mod listen;
mod requests;

pub use self::listen::listen;

const LARGEST_HEADERS: u32 = 64 * 1024;
/// What a caller may send ahead, for a request and in all.
const LARGEST_AHEAD: u32 = 256 * 1024;
/// What waits to be sent, for each answer. More waits where it comes from.
const SEND_BUFFER: usize = 64 * 1024;
/// A caller that does not answer this long is gone.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// Accepting fails for lack of files or memory, which only waiting can mend.
const PAUSE: Duration = Duration::from_millis(50);

/// What servers differ in.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Requests at once on a connection of HTTP/2.
    pub streams: u32,
    /// For the head of a request of HTTP/1.1.
    pub headers: Duration,
    /// A connection that was not used at two looks in a row is asked to end, and at the next one it is cut.
    pub idle_look: Duration,
}

/// The next caller. A free place is waited for first, so that callers wait in the kernel's queue, which is bounded.
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

/// How a connection is used.
#[derive(Debug, Default)]
struct Usage {
    begun: AtomicU64,
    under_way: AtomicU64,
}

/// Held as long as a request is under way.
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
    /// Whether nothing is under way and nothing was since `seen` was last looked at.
    fn is_idle_since(&self, seen: &mut u64) -> bool {
        let before = std::mem::replace(seen, self.begun.load(Ordering::Relaxed));
        *seen == before && self.under_way.load(Ordering::Relaxed) == 0
    }
}

/// Answers the requests of a connection until it ends: by the caller, because nobody uses it, or when `draining` says so. Then
/// what is under way is still answered.
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
            // Each new date would stay in the table of headers that a connection keeps, and nobody who calls these servers reads it.
            .auto_date_header(false)
            .max_header_list_size(LARGEST_HEADERS)
            .max_concurrent_streams(settings.streams)
            .initial_stream_window_size(LARGEST_AHEAD)
            .initial_connection_window_size(LARGEST_AHEAD)
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
            .max_buf_size(LARGEST_HEADERS as usize);
        let connection = Box::pin(builder.serve_connection(stream, service));
        attend(connection, requests, &usage, settings, draining).await;
    }
}

/// The connection stands in a place of its own: a task holds room for every value that it ever hands on, and there are many tasks.
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
            // What the connection has just read is gone on with at once.
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
    debug!("a connection without a request is cut");
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
