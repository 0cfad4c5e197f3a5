//! Clients without a credential, which reconnect as soon as they are cut.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

const BODY: usize = 250_000;
/// A client that is neither answered nor cut reconnects after this time.
const PATIENCE: Duration = Duration::from_secs(20);

/// How a client uses a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Manner {
    /// Sends nothing.
    Silent,
    /// Announces a large handshake message, and stops.
    Begins,
    /// Begins a handshake with the agent's IP address as server name, and would send a body at
    /// once.
    Hasty,
    /// Knows the server name, completes the handshake without a certificate, and sends a body.
    Informed,
    /// Sends a body without TLS.
    Plain,
}

/// Clients that connect until they are stopped.
pub(crate) struct Strangers {
    tasks: JoinSet<()>,
    calls: Arc<AtomicU64>,
}

impl Strangers {
    /// Starts this many clients, with these manners alternating.
    pub(crate) fn begin(
        address: SocketAddr,
        connections: usize,
        manners: &[Manner],
        (name, authority): (&str, &[u8]),
    ) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(CertificateDer::pem_slice_iter(authority).map(Result::unwrap));
        let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let (tls, calls) = (TlsConnector::from(Arc::new(tls)), Arc::<AtomicU64>::default());
        let mut tasks = JoinSet::new();
        for manner in manners.iter().copied().cycle().take(connections) {
            let (tls, calls) = (tls.clone(), calls.clone());
            let name = match manner {
                Manner::Informed => ServerName::try_from(name.to_owned()).unwrap(),
                _ => ServerName::from(address.ip()),
            };
            tasks.spawn(async move {
                loop {
                    let _ = timeout(PATIENCE, call(manner, address, &name, &tls)).await;
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        Self { tasks, calls }
    }

    /// Stops the clients, and returns how often they connected.
    pub(crate) async fn end(mut self) -> u64 {
        self.tasks.shutdown().await;
        self.calls.load(Ordering::Relaxed)
    }
}

async fn call(
    manner: Manner,
    address: SocketAddr,
    name: &ServerName<'static>,
    tls: &TlsConnector,
) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    let body = vec![b'x'; BODY];
    match manner {
        Manner::Silent => {}
        // A handshake message that announces 65,535 bytes, most of which never arrive.
        Manner::Begins => {
            stream.write_all(&[22, 3, 1, 0x3f, 0xff, 1, 0, 0xff, 0xff]).await?;
            stream.write_all(&body[..12_000]).await?;
        }
        Manner::Hasty | Manner::Informed => {
            let mut stream = tls.connect(name.clone(), stream).await?;
            stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await?;
            stream.write_all(&body).await?;
            stream.read_to_end(&mut Vec::new()).await?;
            return Ok(());
        }
        Manner::Plain => {
            let head = format!(
                "POST /apis/events.k8s.io/v1/namespaces/default/events HTTP/1.1\r\nHost: agent\r\nContent-Length: {BODY}\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(&body).await?;
        }
    }
    stream.read_to_end(&mut Vec::new()).await?;
    Ok(())
}
