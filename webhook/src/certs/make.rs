//! Creates keys and certificates.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::crypto::ring;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::sign::CertifiedKey;
use thiserror::Error;
use time::OffsetDateTime;

use super::authority::{Authority, Key};
use super::lifespan::Lifespan;
use super::served::Leaf;
use super::trust::Trust;

/// Why a certificate could not be created.
#[derive(Debug, Error)]
pub(super) enum MakeError {
    #[error("cannot create a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    #[error("cannot use the certificate: {0}")]
    Tls(#[from] rustls::Error),
}

/// A CA that may sign server certificates but no intermediate CAs.
pub(super) fn authority(now: Timestamp, lifetime: Duration) -> Result<Authority, MakeError> {
    let lifespan = Lifespan::starting(now, lifetime);
    let key = KeyPair::generate()?;
    // A unique subject name, so that CAs cannot be confused.
    let identifier = CertificateParams::default().key_identifier(&key);
    let number = identifier.first_chunk().copied().map(u32::from_be_bytes).unwrap_or_default();
    let name = format!("sourcepreserve-webhook-ca-{number:08x}");
    let mut params = params(Vec::new(), name, lifespan)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign];
    let certificate = params.self_signed(&key)?.der().clone();
    Ok(Authority { certificate, key: Key(key.serialize_pem()), lifespan })
}

/// A serving certificate for these names. Its key exists only in memory.
pub(super) fn leaf(
    now: Timestamp,
    lifetime: Duration,
    names: &[String],
    authority: &Authority,
) -> Result<Leaf, MakeError> {
    let mut lifespan = Lifespan::starting(now, lifetime);
    lifespan.ends = lifespan.ends.min(authority.lifespan.ends);
    let Key(signer) = &authority.key;
    let issuer = Issuer::from_ca_cert_der(&authority.certificate, KeyPair::from_pem(signer)?)?;
    let mut params = params(names.to_vec(), "sourcepreserve-webhook".to_owned(), lifespan)?;
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &issuer)?.der().clone();
    let private = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    let key = CertifiedKey::from_der(vec![certificate], private, &ring::default_provider())?;
    Ok(Leaf { key: Arc::new(key), lifespan, signers: Trust::from_iter([authority.certificate.clone()]) })
}

fn params(names: Vec<String>, name: String, lifespan: Lifespan) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let time = |time: Timestamp| {
        OffsetDateTime::from_unix_timestamp(time.as_second()).map_err(|_| rcgen::Error::Time)
    };
    params.not_before = time(lifespan.begins)?;
    params.not_after = time(lifespan.ends)?;
    Ok(params)
}
