//! Certificates issued by cert-manager, or by anything else that maintains a `kubernetes.io/tls`
//! Secret with the CA in `ca.crt`. The Secret is only read.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use kube::{Api, Client};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, ServerName, UnixTime};
use rustls::server::VerifierBuilderError;
use rustls::sign::CertifiedKey;
use thiserror::Error;
use tokio::time::sleep;
use tracing::error;

use super::lifespan::Lifespan;
use super::served::{Leaf, ServedCertificate};
use super::stored::TLS;
use super::trust::Trust;
use super::wait_until;
use crate::named_object::{Known, NamedObject};

const AUTHORITY: &str = "ca.crt";

/// Why the Secret cannot be used.
#[derive(Debug, Error)]
enum Unusable {
    #[error("it does not exist; has cert-manager created it from its Certificate?")]
    Absent,
    #[error("it has no readable {0}; an Issuer of type CA, SelfSigned or Vault provides it")]
    Lacks(&'static str),
    #[error("tls.crt and tls.key do not match or cannot be used: {0}")]
    Key(rustls::Error),
    #[error("cannot use the CA in ca.crt: {0}")]
    Authority(#[from] VerifierBuilderError),
    #[error(
        "ca.crt does not verify tls.crt for {name}: {error}; check dnsNames and issuerRef of the Certificate"
    )]
    Unverified { name: String, error: rustls::Error },
    #[error("{0} is not a valid server name")]
    Name(String),
}

pub(crate) struct IssuedKeeper {
    name: String,
    secret: NamedObject<Secret>,
    /// The DNS name that API servers use.
    server: String,
    certificate: ServedCertificate,
    complaint: String,
}

impl IssuedKeeper {
    pub(crate) fn new(
        client: Client,
        (namespace, name): (&str, &str),
        server: String,
        certificate: ServedCertificate,
    ) -> Self {
        let secret = NamedObject::new(Api::namespaced(client, namespace), name);
        Self { secret, name: name.to_owned(), server, certificate, complaint: String::new() }
    }

    /// Never returns.
    pub(crate) async fn run(mut self) {
        loop {
            let wake = self.look().min(self.certificate.look(Timestamp::now()));
            tokio::select! {
                () = self.secret.changed() => {}
                () = sleep(wait_until(wake)) => {}
            }
        }
    }

    /// Serves the certificate in the Secret once that is allowed. Returns when to look again.
    fn look(&mut self) -> Timestamp {
        let now = Timestamp::now();
        let secret = match self.secret.known() {
            Known::Unread => return Timestamp::MAX,
            Known::Absent => None,
            Known::Present(secret) => Some(secret),
        };
        let leaf = match read(secret, &self.server, now) {
            Ok(leaf) => leaf,
            Err(error) => {
                self.complain(error.to_string());
                return Timestamp::MAX;
            }
        };
        self.complain(String::new());
        self.certificate.trust(now, &leaf.signers);
        if self.certificate.leaf().is_some_and(|served| served.key.cert == leaf.key.cert) {
            return Timestamp::MAX;
        }
        let opens = self.certificate.opens(now, &leaf.signers);
        if opens > now {
            return opens;
        }
        if let Some(lifespan) =
            leaf.signers.iter().filter_map(|each| lifespan(each)).min_by_key(|each| each.ends)
        {
            self.certificate.authority_ends(lifespan.ends);
        }
        self.certificate.serve(leaf);
        // Look again at once, to drop the CA of the previous certificate.
        now
    }

    /// Logs a complaint once.
    fn complain(&mut self, complaint: String) {
        if complaint != self.complaint && !complaint.is_empty() {
            error!(secret = self.name, complaint, "cannot use the Secret of the certificate");
        }
        self.complaint = complaint;
    }
}

fn read(secret: Option<&Secret>, server: &str, now: Timestamp) -> Result<Leaf, Unusable> {
    let data = secret.ok_or(Unusable::Absent)?.data.as_ref();
    let of =
        |key| data.and_then(|data| data.get(key)).map(|text| text.0.as_slice()).ok_or(Unusable::Lacks(key));
    let chain: Vec<_> = Trust::read(of(TLS.0)?).iter().cloned().collect();
    let key = PrivateKeyDer::from_pem_slice(of(TLS.1)?).map_err(|_| Unusable::Lacks(TLS.1))?;
    let signers = Trust::read(of(AUTHORITY)?);
    if signers.is_empty() {
        return Err(Unusable::Lacks(AUTHORITY));
    }
    let lifespan = chain.first().and_then(|leaf| lifespan(leaf)).ok_or(Unusable::Lacks(TLS.0))?;
    let provider = Arc::new(ring::default_provider());
    let key = CertifiedKey::from_der(chain, key, &provider).map_err(Unusable::Key)?;

    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(signers.iter().cloned());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
    let name = ServerName::try_from(server).map_err(|_| Unusable::Name(server.to_owned()))?;
    let seconds = now.as_second().try_into().unwrap_or_default();
    let time = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
    let (end, others) = key.cert.split_first().ok_or(Unusable::Lacks(TLS.0))?;
    verifier
        .verify_server_cert(end, others, &name, &[], time)
        .map_err(|error| Unusable::Unverified { name: server.to_owned(), error })?;
    Ok(Leaf { key: Arc::new(key), lifespan, signers })
}

fn lifespan(certificate: &[u8]) -> Option<Lifespan> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let validity = parsed.validity();
    Some(Lifespan::from_seconds(validity.not_before.timestamp(), validity.not_after.timestamp()))
}

#[cfg(test)]
mod tests;
