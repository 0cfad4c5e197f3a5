//! Listens on the loopback address: TLS with a client certificate first, then kube-proxy's
//! requests.
//!
//! Every process of the node can connect. A client without the certificate gets a bounded wait for
//! its handshake, a bounded share of the CPU and a few kilobytes, so it cannot delay kube-proxy for
//! long. The limits for a client with the certificate fit into the container's memory: connections,
//! times streams, times the buffers of a stream.

mod limited_stream;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use isp_runtime::connection::{Door, DoorLimits, Place, Settings, converse};
use isp_runtime::health::Pulse;
use isp_runtime::shutdown::Shutdown;
use rustls::ServerConfig;
use rustls::server::Acceptor;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{interval, timeout};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::debug;

use self::limited_stream::LimitedStream;
use super::metrics::{ConnectionOutcome, FilterMetrics};
use super::proxy::Proxy;

/// Limits for clients that are not authenticated yet. At the full rate each has 640 ms for its
/// handshake, which takes kube-proxy a few milliseconds. Even if all of them knew the server name,
/// their handshakes would take less than a tenth of a CPU.
const DOOR: DoorLimits = DoorLimits { places: 256, per_second: 400 };
/// The limit while the door is not full.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
const LARGEST_HANDSHAKE: usize = 16 * 1024;
/// How much the kernel buffers for a client that the agent does not read from. It counts for the
/// container's memory.
const RECEIVE_BUFFER: usize = 32 * 1024;
/// The limit of authenticated connections. kube-proxy has one, or a few without HTTP/2.
const MOST_CONNECTIONS: usize = 16;
/// kube-proxy's connection always has a watch. Connections are few, so idle ones of others end
/// soon.
const SETTINGS: Settings = Settings {
    streams: 16,
    headers: Duration::from_secs(10),
    largest_headers: 16 * 1024,
    largest_ahead: 64 * 1024,
    idle_look: Duration::from_secs(10),
};
const BEAT: Duration = Duration::from_secs(1);

type ClientStream = TlsStream<LimitedStream<TcpStream>>;

/// Serves connections.
pub(crate) struct Server {
    /// The server name that kube-proxy asks for.
    pub(crate) name: String,
    pub(crate) tls: Arc<ServerConfig>,
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) metrics: Arc<FilterMetrics>,
}

/// Serves until shutdown. Watches do not end by themselves, so their connections break when the
/// process exits. kube-proxy keeps its rules and reconnects.
pub(crate) async fn serve(listener: TcpListener, server: Server, pulse: Pulse, shutdown: Shutdown) {
    if let Err(error) = SockRef::from(&listener).set_recv_buffer_size(RECEIVE_BUFFER) {
        debug!(%error, "cannot set the size of the receive buffer; the kernel's default stays");
    }
    let (server, free) = (Arc::new(server), Arc::new(Semaphore::new(MOST_CONNECTIONS)));
    let (mut door, mut beat) = (Door::new(listener, DOOR), interval(BEAT));
    loop {
        let (stream, place) = tokio::select! {
            () = shutdown.requested() => return,
            _ = beat.tick() => {
                pulse.beat();
                continue;
            }
            client = door.next() => client,
        };
        let (server, free) = (server.clone(), free.clone());
        tokio::spawn(async move {
            let stream = match server.authenticate(stream, place).await {
                Ok(stream) => stream,
                Err(outcome) => return server.metrics.connection(outcome),
            };
            let Ok(_permit) = free.try_acquire_owned() else {
                return server.metrics.connection(ConnectionOutcome::TooMany);
            };
            server.metrics.connection(ConnectionOutcome::Known);
            server.serve_requests(stream).await;
        });
    }
}

impl Server {
    /// Completes the TLS handshake with a client that has the certificate.
    async fn authenticate(
        &self,
        stream: TcpStream,
        mut place: Place,
    ) -> Result<Box<ClientStream>, ConnectionOutcome> {
        let handshake = async {
            stream.set_nodelay(true)?;
            let limited = LimitedStream::new(stream, LARGEST_HANDSHAKE);
            let begun = LazyConfigAcceptor::new(Acceptor::default(), limited).await?;
            // Only a client that knows the server name causes the costly part. A stranger learns
            // the name only by capturing packets on the loopback interface.
            if begun.client_hello().server_name() != Some(&self.name) {
                return Err(io::Error::other("the client does not ask for the agent's server name"));
            }
            begun.into_stream(self.tls.clone()).await
        };
        let done: Option<Result<io::Result<_>, _>> =
            place.keep(timeout(HANDSHAKE_TIMEOUT, Box::pin(handshake))).await;
        let mut stream = match done {
            Some(Ok(Ok(stream))) => Box::new(stream),
            Some(Ok(Err(error))) => {
                debug!(%error, "the TLS handshake with a client failed");
                return Err(ConnectionOutcome::Unknown);
            }
            Some(Err(_)) => return Err(ConnectionOutcome::TimedOut),
            None => return Err(ConnectionOutcome::Displaced),
        };
        stream.get_mut().0.remove_limit();
        Ok(stream)
    }

    async fn serve_requests(&self, stream: Box<ClientStream>) {
        let connection = self.proxy.open_connection();
        let speaks_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        // Connections are not told to end, see `serve`.
        let never = Shutdown::default();
        converse(stream, speaks_http2, &SETTINGS, &never, |request, in_use| {
            let (proxy, connection) = (self.proxy.clone(), connection.clone());
            async move { proxy.serve(request, &connection).await.map(|body| body.with(in_use)) }
        })
        .await;
    }
}
