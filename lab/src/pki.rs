//! Certificates of a cluster: an authority, and what it issues. Everything is made anew for each lab and ends
//! with it; nobody skips verification anywhere.

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

/// Why certificates could not be made.
#[derive(Debug, Error)]
pub enum PkiError {
    /// The certificate library refused.
    #[error("cannot issue a certificate for {name}: {source}")]
    Issue {
        /// Whose certificate.
        name: String,
        /// What it said.
        source: rcgen::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// What a certificate is for.
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

    /// Issues a certificate for the user (or server) `name` of group `group`, reachable at `names`.
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

    /// The authority's own key: the controller-manager signs certificate requests with it.
    pub(crate) fn key(&self) -> String {
        self.issuer.key().serialize_pem()
    }
}

/// A key pair that signs service account tokens: the public half and the private half, in PEM.
pub(crate) fn token_keys() -> Result<(String, String), PkiError> {
    let key = KeyPair::generate()
        .map_err(|source| PkiError::Issue { name: "service account tokens".to_owned(), source })?;
    Ok((key.public_key_pem(), key.serialize_pem()))
}

/// Writes a file that only its owner reads.
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

/// An hour back for clocks that differ, a year ahead: a lab does not live that long.
fn set_validity(params: &mut CertificateParams) {
    let now = OffsetDateTime::now_utc();
    params.not_before = now - Duration::hours(1);
    params.not_after = now + Duration::days(365);
}
