//! The Secret with the CAs: certificate and key of the current and the next CA, the previous CA's
//! certificate, and times in annotations. Other data in the Secret is preserved.
//!
//! Entries that cannot be read count as absent and are reported, and the caller replaces them. A
//! Secret with `tls.crt` or `tls.key`, such as cert-manager's, is foreign and never written.

use std::collections::BTreeMap;

use isp_api::names::{NEXT_SINCE_ANNOTATION, SIGNS_SINCE_ANNOTATION};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use thiserror::Error;

use super::authority::{Authority, Key, Unusable};
use super::rotation::{Authorities, Dated};
use super::trust::Trust;

const CURRENT: (&str, &str) = ("ca.crt", "ca.key");
const NEXT: (&str, &str) = ("next.crt", "next.key");
const PREVIOUS: &str = "previous.crt";

/// The keys of a Secret of type `kubernetes.io/tls`.
pub(super) const TLS: (&str, &str) = ("tls.crt", "tls.key");

/// The Secret belongs to someone else.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "it has {0}, like a Secret of cert-manager, and will not be changed: choose another with --secret, or let cert-manager provide the \
     certificates with --certificates=secret"
)]
pub(super) struct Foreign(&'static str);

/// The content of the Secret.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) authorities: Authorities,
    /// Entries that cannot be used, by key.
    pub(super) unusable: Vec<(&'static str, Unusable)>,
}

pub(super) fn read(secret: &Secret) -> Result<Found, Foreign> {
    let mut found = Found::default();
    let empty = BTreeMap::new();
    let data = secret.data.as_ref().unwrap_or(&empty);
    if let Some(key) = [TLS.0, TLS.1].into_iter().find(|key| data.contains_key(*key)) {
        return Err(Foreign(key));
    }
    let time = |annotation: &str| secret.metadata.annotations.as_ref()?.get(annotation)?.parse().ok();
    let mut authority = |(certificate, key): (&'static str, &'static str)| {
        let read = match (data.get(certificate), data.get(key)) {
            (None, None) => return None,
            (Some(certificate), Some(key)) => Authority::read(&certificate.0, &key.0),
            _ => Err(Unusable::Half),
        };
        read.map_err(|error| found.unusable.push((certificate, error))).ok()
    };
    found.authorities.current = authority(CURRENT);
    found.authorities.next = authority(NEXT).map(|what| Dated { what, since: time(NEXT_SINCE_ANNOTATION) });
    found.authorities.previous = data.get(PREVIOUS).and_then(|text| {
        let read = CertificateDer::from_pem_slice(&text.0).map_err(|_| Unusable::Certificate);
        let what = read.map_err(|error| found.unusable.push((PREVIOUS, error))).ok()?;
        Some(Dated { what, since: time(SIGNS_SINCE_ANNOTATION) })
    });
    Ok(found)
}

/// The Secret with these CAs stored in it.
pub(super) fn write(mut secret: Secret, authorities: &Authorities) -> Secret {
    let data = secret.data.get_or_insert_default();
    for key in [CURRENT.0, CURRENT.1, NEXT.0, NEXT.1, PREVIOUS] {
        data.remove(key);
    }
    let mut put = |key: &str, text: String| drop(data.insert(key.to_owned(), ByteString(text.into_bytes())));
    let pem = |certificate: &CertificateDer<'static>| Trust::from_iter([certificate.clone()]).pem();
    let pairs =
        [(CURRENT, authorities.current.as_ref()), (NEXT, authorities.next.as_ref().map(|next| &next.what))];
    for ((certificate, key), authority) in pairs {
        if let Some(authority) = authority {
            let Key(text) = &authority.key;
            put(certificate, pem(&authority.certificate));
            put(key, text.clone());
        }
    }
    if let Some(previous) = &authorities.previous {
        put(PREVIOUS, pem(&previous.what));
    }
    let annotations = secret.metadata.annotations.get_or_insert_default();
    let mut note = |annotation: &str, since: Option<Timestamp>| match since {
        Some(since) => drop(annotations.insert(annotation.to_owned(), since.to_string())),
        None => drop(annotations.remove(annotation)),
    };
    note(NEXT_SINCE_ANNOTATION, authorities.next.as_ref().and_then(|next| next.since));
    note(SIGNS_SINCE_ANNOTATION, authorities.previous.as_ref().and_then(|previous| previous.since));
    secret
}

#[cfg(test)]
mod tests;
