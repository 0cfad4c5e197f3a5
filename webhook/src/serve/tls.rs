//! How callers are spoken with, and who they have to be.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use rustls::server::{ResolvesServerCert, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use thiserror::Error;

/// Why there is no TLS.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TlsError {
    #[error("cannot read --client-ca {}: {source}; it is a file of certificates in PEM", path.display())]
    ClientCa { path: PathBuf, source: pem::Error },
    #[error("cannot verify callers by --client-ca {}: {source}", path.display())]
    Verifier { path: PathBuf, source: VerifierBuilderError },
    #[error("cannot speak TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// TLS 1.2 and 1.3, with the certificate that is there when a caller comes. With `client_ca`, callers have to have a certificate that
/// one of its authorities has signed.
pub(crate) fn tls(
    certificates: Arc<dyn ResolvesServerCert>,
    client_ca: Option<&Path>,
) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(roots(path)?.into(), provider).build();
            let unusable = |source| TlsError::Verifier { path: path.to_owned(), source };
            builder.with_client_cert_verifier(verifier.map_err(unusable)?)
        }
    };
    let mut tls = builder.with_cert_resolver(certificates);
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(tls))
}

fn roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let unreadable = |source| TlsError::ClientCa { path: path.to_owned(), source };
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(unreadable)?.collect();
    let mut roots = RootCertStore::empty();
    for certificate in certificates.map_err(unreadable)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}
