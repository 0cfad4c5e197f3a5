//! The certificates of the loopback: one by which kube-proxy knows the agent, and one by which the agent knows kube-proxy. An
//! authority that exists only while they are made has signed both, so nobody can make another.
//!
//! An agent that is started again in the same pod takes the certificates that are there: kube-proxy reads its own once, at its own
//! start, and would know no others. They are one file, so that they are there as a whole or not at all.

use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use serde::{Deserialize, Serialize};
use tracing::warn;

use super::{ServingError, write};
use crate::node::upstream::certificates;

/// No file of kube-proxy's begins with a dot: the mirror leaves those out.
const FILE: &str = ".identity";

/// Who the agent is on the loopback, and whom it serves there. All in PEM.
#[derive(Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The name under which kube-proxy calls the agent, and nobody else: a caller that does not say it costs no handshake. It is no
    /// proof of anything, since it is sent in the clear.
    pub(crate) name: String,
    pub(super) authority: String,
    pub(super) serving: Pair,
    /// For kube-proxy, and for nobody else.
    pub(super) client: Pair,
}

#[derive(Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
}

impl Identity {
    /// The identity that is in the directory, or a new one.
    pub(crate) fn at(directory: &Path, address: IpAddr) -> Result<Self, ServingError> {
        let path = directory.join(FILE);
        let present = fs::read_to_string(&path).ok();
        if let Some(text) = present {
            let earlier = serde_json::from_str::<Self>(&text).ok().filter(|earlier| earlier.tls().is_ok());
            if let Some(earlier) = earlier {
                return Ok(earlier);
            }
            warn!(file = %path.display(), "the certificates of an earlier start are damaged and made anew; kube-proxy knows them after its own next start");
        }
        let made = Self::make(address)?;
        write(&path, &serde_json::to_string(&made)?)?;
        Ok(made)
    }

    fn make(address: IpAddr) -> Result<Self, ServingError> {
        let key = KeyPair::generate()?;
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        // Another name than its certificates have: OpenSSL takes one whose issuer has its own name for self-signed.
        authority.distinguished_name.push(DnType::CommonName, "proxy-agent-ca");
        let authority_pem = authority.self_signed(&key)?.pem();
        let issuer = Issuer::new(authority, key);
        let pair = |names: Vec<String>, common_name: &str, purpose: ExtendedKeyUsagePurpose| {
            let key = KeyPair::generate()?;
            let mut leaf = CertificateParams::new(names)?;
            leaf.distinguished_name.push(DnType::CommonName, common_name);
            leaf.extended_key_usages = vec![purpose];
            let certificate = leaf.signed_by(&key, &issuer)?.pem();
            Ok::<_, rcgen::Error>(Pair { certificate, key: key.serialize_pem() })
        };
        let name = unguessable_name()?;
        let names = vec![name.clone(), address.to_string()];
        Ok(Self {
            name,
            authority: authority_pem,
            serving: pair(names, "proxy-agent", ExtendedKeyUsagePurpose::ServerAuth)?,
            client: pair(Vec::new(), "kube-proxy", ExtendedKeyUsagePurpose::ClientAuth)?,
        })
    }

    /// The server's side of TLS: a caller without the client's certificate does not get through the handshake.
    pub(crate) fn tls(&self) -> Result<Arc<ServerConfig>, ServingError> {
        let bad = |reason: String| rustls::Error::General(reason);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        for authority in certificates(self.authority.as_bytes()).map_err(bad)? {
            roots.add(authority)?;
        }
        let callers = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone()).build()?;
        let chain = certificates(self.serving.certificate.as_bytes()).map_err(bad)?;
        let key = PrivateKeyDer::from_pem_slice(self.serving.key.as_bytes());
        let mut tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(callers)
            .with_single_cert(chain, key.map_err(|error| bad(error.to_string()))?)?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        // kube-proxy resumes no session, and none is kept for anybody else.
        tls.session_storage = Arc::new(NoServerSessionStorage {});
        tls.send_tls13_tickets = 0;
        Ok(Arc::new(tls))
    }
}

fn unguessable_name() -> Result<String, rustls::Error> {
    let mut random = [0; 16];
    let source = rustls::crypto::ring::default_provider().secure_random;
    source.fill(&mut random).map_err(|_| rustls::Error::FailedToGetRandomBytes)?;
    Ok(format!("{:032x}.proxy-agent.internal", u128::from_be_bytes(random)))
}
