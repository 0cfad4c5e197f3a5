//! A CA: its certificate and its key.

use std::fmt;

use k8s_openapi::jiff::Timestamp;
use rcgen::{KeyPair, PublicKeyData};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use thiserror::Error;

use super::lifespan::Lifespan;

/// A key in PEM. Its Debug output is redacted.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Key(pub(crate) String);

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Key(…)")
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Authority {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) key: Key,
    pub(crate) lifespan: Lifespan,
}

/// Why a CA cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum Unusable {
    #[error("the certificate or its key is missing")]
    Half,
    #[error("the certificate cannot be read")]
    Certificate,
    #[error("the certificate is not that of a CA")]
    NoAuthority,
    #[error("the key cannot be read")]
    Key,
    #[error("the key belongs to another certificate")]
    OtherKey,
    #[error("it expired at {0}")]
    Ended(Timestamp),
    #[error("it is not valid before {0}; is a clock wrong?")]
    NotYet(Timestamp),
}

impl Authority {
    pub(crate) fn read(certificate: &[u8], key: &[u8]) -> Result<Self, Unusable> {
        let certificate = CertificateDer::from_pem_slice(certificate).map_err(|_| Unusable::Certificate)?;
        let (_, parsed) =
            x509_parser::parse_x509_certificate(&certificate).map_err(|_| Unusable::Certificate)?;
        if !parsed.is_ca() {
            return Err(Unusable::NoAuthority);
        }
        let key = str::from_utf8(key).map_err(|_| Unusable::Key)?;
        let pair = KeyPair::from_pem(key).map_err(|_| Unusable::Key)?;
        if pair.subject_public_key_info() != parsed.public_key().raw {
            return Err(Unusable::OtherKey);
        }
        let validity = parsed.validity();
        let lifespan =
            Lifespan::from_seconds(validity.not_before.timestamp(), validity.not_after.timestamp());
        Ok(Self { key: Key(key.to_owned()), lifespan, certificate })
    }

    /// Whether the CA is valid now.
    pub(crate) fn check(&self, now: Timestamp) -> Result<(), Unusable> {
        let Lifespan { begins, ends } = self.lifespan;
        match () {
            () if now < begins => Err(Unusable::NotYet(begins)),
            () if now >= ends => Err(Unusable::Ended(ends)),
            () => Ok(()),
        }
    }
}
