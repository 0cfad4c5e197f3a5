//! The CA certificates that API servers should trust: the content of a `caBundle`.

use pem::{EncodeConfig, LineEnding, Pem};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// A set of certificates, in insertion order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trust(Vec<CertificateDer<'static>>);

impl Trust {
    /// Reads PEM certificates. Anything else is ignored.
    pub(crate) fn read(text: &[u8]) -> Self {
        CertificateDer::pem_slice_iter(text).filter_map(Result::ok).collect()
    }

    pub(crate) fn pem(&self) -> String {
        let certificates: Vec<_> = self.0.iter().map(|der| Pem::new("CERTIFICATE", der.to_vec())).collect();
        pem::encode_many_config(&certificates, EncodeConfig::new().set_line_ending(LineEnding::LF))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &CertificateDer<'static>> {
        self.0.iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn contains(&self, certificate: &CertificateDer<'_>) -> bool {
        self.0.contains(certificate)
    }

    /// Whether this contains all of the others.
    pub(crate) fn covers(&self, others: &Self) -> bool {
        others.iter().all(|each| self.contains(each))
    }

    /// The union of both.
    pub(crate) fn with(&self, others: &Self) -> Self {
        self.iter().chain(others.iter()).cloned().collect()
    }
}

impl FromIterator<CertificateDer<'static>> for Trust {
    fn from_iter<I: IntoIterator<Item = CertificateDer<'static>>>(certificates: I) -> Self {
        let mut trust = Self::default();
        for certificate in certificates {
            if !trust.contains(&certificate) {
                trust.0.push(certificate);
            }
        }
        trust
    }
}

/// Ignores the order.
impl PartialEq for Trust {
    fn eq(&self, other: &Self) -> bool {
        self.covers(other) && other.covers(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certs::fixtures::trust;

    #[test]
    fn it_survives_being_written_and_read_and_what_else_is_there_does_not() {
        let written = trust(b"ab").pem();
        assert!(!written.contains('\r'));
        let with_others = format!("subject=/CN=a\n{written}\n-----BEGIN CERTIFICATE-----\n!\n");
        for text in [written, with_others] {
            assert_eq!(Trust::read(text.as_bytes()), trust(b"ab"), "{text}");
        }
        assert!(Trust::read(b"garbage").is_empty());
        assert!(Trust::read(b"\xff\n").is_empty());
    }

    #[test]
    fn each_certificate_is_there_once_and_the_order_does_not_count() {
        assert_eq!(trust(b"ab").with(&trust(b"ba")).0.len(), 2);
        assert_eq!(trust(b"ab"), trust(b"ba"));
        assert!(trust(b"abc").covers(&trust(b"ca")) && !trust(b"ca").covers(&trust(b"abc")));
    }
}
