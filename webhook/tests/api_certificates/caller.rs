//! A caller that trusts only a given bundle.

use isp_testkit::webhook::SERVER;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Performs a handshake with a replica and returns its certificate.
pub(crate) async fn call(address: SocketAddr, bundle: &[u8]) -> Result<CertificateDer<'static>, String> {
    let mut roots = RootCertStore::empty();
    let certificates: Vec<_> = certificates(bundle);
    roots.add_parsable_certificates(certificates);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    // A full handshake each time.
    tls.resumption = Resumption::disabled();
    let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    let name = ServerName::try_from(SERVER).unwrap();
    let stream = TlsConnector::from(Arc::new(tls)).connect(name, stream).await;
    let stream = stream.map_err(|error| error.to_string())?;
    Ok(stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned())
}

/// The certificates of a bundle.
pub(crate) fn certificates(bundle: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(bundle).map(Result::unwrap).collect()
}
