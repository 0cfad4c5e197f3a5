//! The certificates of a cluster: a CA and what it issues. They are created for each lab and
//! removed with it. No client skips verification.

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use thiserror::Error;
use time::{Duration, OffsetDateTime};

/// Why certificates could not be issued.
#[derive(Debug, Error)]
pub enum PkiError {
    /// The certificate library failed.
    #[error("cannot issue a certificate for {name}: {source}")]
    Issue {
        /// The certificate's subject.
        name: String,
        /// The library's error.
        source: rcgen::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
}

/// The extended key usage of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Usage {
    Server,
    Client,
    Both,
}

/// A certificate authority.
pub(crate) struct Authority {
    pub(crate) certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM.
#[derive(Debug, Clone)]
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Result<Self, PkiError> {
        let fail = |source| PkiError::Issue { name: name.to_owned(), source };
        let key = KeyPair::generate().map_err(fail)?;
        let mut params = CertificateParams::new(Vec::new()).map_err(fail)?;
        params.distinguished_name = distinguished_name(name, None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        set_validity(&mut params);
        let certificate = params.self_signed(&key).map_err(fail)?.pem();
        Ok(Self { certificate, issuer: Issuer::new(params, key) })
    }

    /// Issues a certificate for the user or server `name` in group `group`, with the subject
    /// alternative names `names`.
    pub(crate) fn issue(
        &self,
        name: &str,
        group: Option<&str>,
        names: Vec<String>,
        usage: Usage,
    ) -> Result<Pair, PkiError> {
        let fail = |source| PkiError::Issue { name: name.to_owned(), source };
        let key = KeyPair::generate().map_err(fail)?;
        let mut params = CertificateParams::new(names).map_err(fail)?;
        params.distinguished_name = distinguished_name(name, group);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        if usage != Usage::Client {
            params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        }
        if usage != Usage::Server {
            params.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
        }
        set_validity(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).map_err(fail)?.pem();
        Ok(Pair { certificate, key: key.serialize_pem() })
    }

    /// The CA's private key. The controller-manager signs certificate requests with it.
    pub(crate) fn key(&self) -> String {
        self.issuer.key().serialize_pem()
    }
}

/// Generates the key pair that signs service account tokens: public and private key, in PEM.
pub(crate) fn token_keys() -> Result<(String, String), PkiError> {
    let key = KeyPair::generate()
        .map_err(|source| PkiError::Issue { name: "service account tokens".to_owned(), source })?;
    Ok((key.public_key_pem(), key.serialize_pem()))
}

/// Writes a file that only its owner can read.
pub(crate) fn write_private(path: &Path, content: &str) -> Result<(), PkiError> {
    let fail = |source| PkiError::Write { path: path.to_owned(), source };
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(path).map_err(fail)?;
    io::Write::write_all(&mut file, content.as_bytes()).map_err(fail)
}

fn distinguished_name(name: &str, group: Option<&str>) -> DistinguishedName {
    let mut dn = DistinguishedName::new();
    if let Some(group) = group {
        dn.push(DnType::OrganizationName, group);
    }
    dn.push(DnType::CommonName, name);
    dn
}

/// Valid from an hour ago, for clock skew, until a year from now.
fn set_validity(params: &mut CertificateParams) {
    let now = OffsetDateTime::now_utc();
    params.not_before = now - Duration::hours(1);
    params.not_after = now + Duration::days(365);
}
