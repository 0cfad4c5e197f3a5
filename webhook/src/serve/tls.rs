//! TLS settings and client authentication.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use rustls::server::{ResolvesServerCert, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use thiserror::Error;

use super::callers::Named;

/// Accepted callers: those with a client certificate from one of these CAs.
#[derive(Clone, Debug)]
pub(crate) struct Callers {
    /// A PEM file with the CA certificates.
    pub(crate) authorities: PathBuf,
    /// Accepted names in the client certificate; empty accepts all.
    pub(crate) names: Vec<String>,
}

/// Why TLS could not be set up.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum TlsError {
    #[error("cannot read --client-ca {}: {source}; it must be a file of PEM certificates", path.display())]
    ClientCa { path: PathBuf, source: pem::Error },
    #[error("cannot verify callers with --client-ca {}: {source}", path.display())]
    Verifier { path: PathBuf, source: VerifierBuilderError },
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// TLS 1.2 and 1.3, with the serving certificate resolved per connection. Without `callers`, no
/// client certificate is required.
pub(crate) fn tls(
    certificates: Arc<dyn ResolvesServerCert>,
    callers: Option<&Callers>,
) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let builder = match callers {
        None => builder.with_no_client_auth(),
        Some(Callers { authorities: path, names }) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(roots(path)?.into(), provider).build();
            let unusable = |source| TlsError::Verifier { path: path.clone(), source };
            builder.with_client_cert_verifier(Named::new(verifier.map_err(unusable)?, names))
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
