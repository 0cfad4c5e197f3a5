//! The listener on the loopback: TLS with a client certificate first, and then requests of kube-proxy's.
//!
//! Every process of the node can connect. One without the certificate gets a place at the door, a bounded part of the processor and a few
//! kilobytes, and no more; it is never a reason for kube-proxy to wait for long. What is counted here for one that has the certificate
//! fits into the container's memory as a whole: connections times streams times what a stream may hold.

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

use self::limited_stream::Metered;
use crate::filter::metrics::{Call, Metrics};
use crate::filter::proxy::Proxy;
use crate::node::view::State;

/// Callers that are not known yet. At the full rate each has 640 ms for its handshake, which takes kube-proxy a few, and if all of them knew
/// the name their handshakes would take less than a tenth of a processor.
const DOOR: DoorLimits = DoorLimits { places: 256, per_second: 400 };
/// When the door is not full.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
const LARGEST_HANDSHAKE: usize = 16 * 1024;
/// What the kernel holds of a caller that is not read. It counts for the container.
const RECEIVE_BUFFER: usize = 32 * 1024;
/// Callers that are known. kube-proxy has one, a few without HTTP/2.
const MOST_CONNECTIONS: usize = 16;
/// kube-proxy's connection always has a watch, and places are few, so others are soon found idle.
const SETTINGS: Settings = Settings {
    streams: 16,
    headers: Duration::from_secs(10),
    largest_headers: 16 * 1024,
    largest_ahead: 64 * 1024,
    idle_look: Duration::from_secs(10),
};
const BEAT: Duration = Duration::from_secs(1);

/// What a conversation needs.
pub(crate) struct Server {
    /// The name that kube-proxy calls.
    pub(crate) name: String,
    pub(crate) tls: Arc<ServerConfig>,
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) state: Arc<State>,
    pub(crate) metrics: Arc<Metrics>,
}

/// Serves until shutdown. Watches have no end of their own, so connections are then cut with the process; kube-proxy keeps its
/// rules and comes back.
pub(crate) async fn serve(listener: TcpListener, server: Server, pulse: Pulse, shutdown: Shutdown) {
    if let Err(error) = SockRef::from(&listener).set_recv_buffer_size(RECEIVE_BUFFER) {
        debug!(%error, "the kernel's own size of buffers stays");
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
            caller = door.next() => caller,
        };
        let (server, free) = (server.clone(), free.clone());
        tokio::spawn(async move {
            let stream = match server.known(stream, place).await {
                Ok(stream) => stream,
                Err(call) => return server.metrics.called(call),
            };
            let Ok(_place) = free.try_acquire_owned() else { return server.metrics.called(Call::TooMany) };
            server.metrics.called(Call::Known);
            server.converse(stream).await;
        });
    }
}

impl Server {
    /// A caller with the certificate, and its stream.
    async fn known(
        &self,
        stream: TcpStream,
        mut place: Place,
    ) -> Result<Box<TlsStream<Metered<TcpStream>>>, Call> {
        let handshake = async {
            stream.set_nodelay(true)?;
            let metered = Metered::new(stream, LARGEST_HANDSHAKE);
            let begun = LazyConfigAcceptor::new(Acceptor::default(), metered).await?;
            // The costly part is for those that know the name, which is all but a stranger that reads the loopback's packets.
            if begun.client_hello().server_name() != Some(&self.name) {
                return Err(io::Error::other("it does not call the agent's name"));
            }
            begun.into_stream(self.tls.clone()).await
        };
        let done: Option<Result<io::Result<_>, _>> =
            place.keep(timeout(HANDSHAKE_TIMEOUT, Box::pin(handshake))).await;
        let mut stream = match done {
            Some(Ok(Ok(stream))) => Box::new(stream),
            Some(Ok(Err(error))) => {
                debug!(%error, "no TLS with a caller");
                return Err(Call::Unknown);
            }
            Some(Err(_)) => return Err(Call::TimedOut),
            None => return Err(Call::Displaced),
        };
        stream.get_mut().0.lift();
        Ok(stream)
    }

    async fn converse(&self, stream: Box<TlsStream<Metered<TcpStream>>>) {
        let connection = self.state.connect();
        let speaks_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        // They are never told to end, see above.
        let never = Shutdown::default();
        converse(stream, speaks_http2, &SETTINGS, &never, |request, in_use| {
            let (proxy, connection) = (self.proxy.clone(), connection.clone());
            async move { proxy.serve(request, &connection).await.map(|body| body.with(in_use)) }
        })
        .await;
    }
}
