//! The listener on the loopback: TLS first, and then requests of kube-proxy's.

use std::sync::Arc;
use std::time::Duration;

use isp_runtime::connection::{Settings, accept, converse};
use isp_runtime::shutdown::Shutdown;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tracing::debug;

use crate::proxy::Proxy;

/// kube-proxy has a few; more wait until one of these ends.
const MOST_CONNECTIONS: usize = 64;
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// kube-proxy's connection always has a watch, and places are few, so others are soon found idle.
const SETTINGS: Settings =
    Settings { streams: 64, headers: Duration::from_secs(10), idle_look: Duration::from_secs(10) };

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
            accepted = accept(&listener, &free) => accepted,
        };
        let (acceptor, proxy) = (acceptor.clone(), proxy.clone());
        tokio::spawn(async move {
            let _place = place;
            let stream = match timeout(HANDSHAKE_TIMEOUT, Box::pin(acceptor.accept(stream))).await {
                Ok(Ok(stream)) => Box::new(stream),
                Ok(Err(error)) => return debug!(%error, "no TLS with a caller"),
                Err(_) => return debug!("a caller did not finish its TLS handshake"),
            };
            let speaks_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            // They are never told to end, see above.
            let never = Shutdown::default();
            converse(stream, speaks_http2, &SETTINGS, &never, |request, in_use| {
                let proxy = proxy.clone();
                async move { proxy.serve(request).await.map(|body| body.with(in_use)) }
            })
            .await;
        });
    }
}
