//! Opens connections to the API server. A name may have several IP addresses, and any of them may
//! be dead. Each has a timeout, TLS handshake included, before the next one is tried.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, BufReader, ReadBuf};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower_service::Service;
use tracing::debug;

/// How long one address may take until the connection is ready for a request.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(5);
/// For connections without HTTP/2 and its pings: a peer that is silent for half a minute is dead.
const KEEPALIVE: TcpKeepalive = TcpKeepalive::new()
    .with_time(Duration::from_secs(15))
    .with_interval(Duration::from_secs(5))
    .with_retries(3);
/// How much is read at once. A list arrives in small pieces.
const READ_BUFFER: usize = 16 * 1024;

/// Opens connections.
#[derive(Clone)]
pub(super) struct Connector {
    tls: Arc<ClientConfig>,
    /// The name in the server's certificate, if it differs from the host in the address.
    name: Option<ServerName<'static>>,
}

impl Connector {
    pub(super) fn new(tls: ClientConfig, name: Option<ServerName<'static>>) -> Self {
        Self { tls: Arc::new(tls), name }
    }

    async fn connect(self, server: Uri) -> io::Result<TokioIo<TlsConnection>> {
        let host = server.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let port = server.port_u16().unwrap_or(443);
        let name = match &self.name {
            Some(name) => name.clone(),
            None => ServerName::try_from(host.to_owned()).map_err(io::Error::other)?,
        };
        let addresses = lookup_host((host, port)).await?;
        self.connect_to_first(addresses, &name).await.map(TokioIo::new)
    }

    /// Connects to the first of these addresses that works.
    async fn connect_to_first(
        &self,
        addresses: impl Iterator<Item = SocketAddr>,
        name: &ServerName<'static>,
    ) -> io::Result<TlsConnection> {
        let mut last_error = io::Error::other("the API server's name has no IP address");
        for address in addresses {
            match timeout(ADDRESS_TIMEOUT, self.connect_to(address, name.clone())).await {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(error)) => last_error = error,
                Err(_) => last_error = io::ErrorKind::TimedOut.into(),
            }
            debug!(%address, error = %last_error, "cannot connect to an address of the API server");
        }
        Err(last_error)
    }

    async fn connect_to(&self, address: SocketAddr, name: ServerName<'static>) -> io::Result<TlsConnection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        SockRef::from(&stream).set_tcp_keepalive(&KEEPALIVE)?;
        let stream = BufReader::with_capacity(READ_BUFFER, stream);
        Ok(TlsConnection(TlsConnector::from(self.tls.clone()).connect(name, stream).await?))
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TlsConnection>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        Box::pin(self.clone().connect(server))
    }
}

/// One TLS connection.
pub(super) struct TlsConnection(TlsStream<BufReader<TcpStream>>);

impl Connection for TlsConnection {
    fn connected(&self) -> Connected {
        if self.0.get_ref().1.alpn_protocol() == Some(b"h2") {
            Connected::new().negotiated_h2()
        } else {
            Connected::new()
        }
    }
}

impl AsyncRead for TlsConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for TlsConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener as BlockingListener};

    use rustls::{RootCertStore, ServerConfig};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;

    fn provider() -> Arc<rustls::crypto::CryptoProvider> {
        Arc::new(rustls::crypto::ring::default_provider())
    }

    /// Starts a TLS server; returns its address and a connector that trusts it.
    async fn server() -> (SocketAddr, Connector) {
        let made = rcgen::generate_simple_self_signed(["api.example".to_owned()]).unwrap();
        let certificate = made.cert.der().clone();
        let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let tls = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let acceptor = TlsAcceptor::from(Arc::new(tls));
            while let Ok((stream, _)) = listener.accept().await {
                let accepted = acceptor.accept(stream);
                tokio::spawn(async move {
                    let _stream = accepted.await;
                    std::future::pending::<()>().await;
                });
            }
        });
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let tls = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        (address, Connector::new(tls, None))
    }

    #[tokio::test]
    async fn an_address_that_refuses_and_one_that_is_silent_are_passed_over() {
        let (good, connector) = server().await;
        let refusing = BlockingListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        // The kernel accepts connections; nobody answers.
        let silent = BlockingListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let addresses = [refusing, silent.local_addr().unwrap(), good];
        let name = ServerName::try_from("api.example").unwrap();
        let connection = connector.connect_to_first(addresses.into_iter(), &name).await.unwrap();
        assert_eq!(connection.0.get_ref().0.get_ref().peer_addr().unwrap(), good);
        let other = ServerName::try_from("other.example").unwrap();
        let wrong = connector.connect_to_first([good].into_iter(), &other).await;
        assert_eq!(
            wrong.map(drop).unwrap_err().kind(),
            io::ErrorKind::InvalidData,
            "the certificate is for another name"
        );
        assert!(connector.connect_to_first([].into_iter(), &name).await.is_err());
    }
}
