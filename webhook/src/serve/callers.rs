//! Restricts callers by the names in their certificate. A CA alone is not enough: the cluster's CA
//! also signs certificates for kubelets and users.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use tracing::debug;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;

/// Wraps a verifier and then checks the names of the certificate.
#[derive(Debug)]
pub(super) struct Named {
    inner: Arc<dyn ClientCertVerifier>,
    names: Vec<String>,
}

impl Named {
    /// The certificate's common name or one of its DNS names must be in `names`. If `names` is
    /// empty, every certificate is accepted.
    pub(super) fn new(inner: Arc<dyn ClientCertVerifier>, names: &[String]) -> Arc<Self> {
        Arc::new(Self { inner, names: names.to_vec() })
    }

    fn knows(&self, certificate: &X509Certificate<'_>) -> bool {
        self.names.is_empty() || names(certificate).any(|name| self.names.iter().any(|known| known == name))
    }
}

fn names<'a>(certificate: &'a X509Certificate<'_>) -> impl Iterator<Item = &'a str> {
    let common = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok());
    let alternatives = certificate.subject_alternative_name().ok().flatten();
    let alternatives = alternatives.into_iter().flat_map(|extension| &extension.value.general_names);
    common.chain(alternatives.filter_map(|name| match name {
        GeneralName::DNSName(name) => Some(*name),
        _ => None,
    }))
}

impl ClientCertVerifier for Named {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.inner.verify_client_cert(end_entity, intermediates, now)?;
        let (_, certificate) = x509_parser::parse_x509_certificate(end_entity)
            .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
        if self.knows(&certificate) {
            return Ok(verified);
        }
        debug!(subject = %certificate.subject(), "rejecting a caller that --client-name does not list");
        Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
