//! The certificates for the loopback address: one authenticates the agent to kube-proxy, the other
//! one kube-proxy to the agent. The key of the CA that signs both is discarded afterwards, so
//! nobody can issue another certificate.
//!
//! An agent that restarts in the same pod reuses them: kube-proxy reads its certificate only once,
//! when it starts, and would not know a new one. They are in one file, so that they are complete or
//! absent.

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
use crate::filter::upstream::parse_certificates;

/// It begins with a dot, so no mirrored file of kube-proxy has this name.
const FILE: &str = ".identity";

/// The certificates of the agent and of its one client. All in PEM.
#[derive(Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The TLS server name that only kube-proxy knows. The agent rejects a client without it before
    /// the handshake. It proves nothing, because clients send it in the clear.
    pub(crate) name: String,
    #[serde(rename = "authority")]
    pub(super) ca: String,
    pub(super) serving: CertificateAndKey,
    /// For kube-proxy only.
    pub(super) client: CertificateAndKey,
}

#[derive(Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct CertificateAndKey {
    pub(super) certificate: String,
    pub(super) key: String,
}

impl Identity {
    /// Reads the identity in the directory, or creates one.
    pub(crate) fn at(directory: &Path, address: IpAddr) -> Result<Self, ServingError> {
        let path = directory.join(FILE);
        let present = fs::read_to_string(&path).ok();
        if let Some(text) = present {
            let earlier = serde_json::from_str::<Self>(&text).ok().filter(|earlier| earlier.tls().is_ok());
            if let Some(earlier) = earlier {
                return Ok(earlier);
            }
            warn!(file = %path.display(), "replacing damaged certificates of an earlier start; kube-proxy cannot connect before it restarts");
        }
        let created = Self::create(address)?;
        write(&path, &serde_json::to_string(&created)?)?;
        Ok(created)
    }

    fn create(address: IpAddr) -> Result<Self, ServingError> {
        let key = KeyPair::generate()?;
        let mut ca = CertificateParams::new(Vec::new())?;
        ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        // OpenSSL takes a certificate for self-signed if its issuer has the same name.
        ca.distinguished_name.push(DnType::CommonName, "proxy-agent-ca");
        let ca_pem = ca.self_signed(&key)?.pem();
        let issuer = Issuer::new(ca, key);
        let pair = |names: Vec<String>, common_name: &str, purpose: ExtendedKeyUsagePurpose| {
            let key = KeyPair::generate()?;
            let mut leaf = CertificateParams::new(names)?;
            leaf.distinguished_name.push(DnType::CommonName, common_name);
            leaf.extended_key_usages = vec![purpose];
            let certificate = leaf.signed_by(&key, &issuer)?.pem();
            Ok::<_, rcgen::Error>(CertificateAndKey { certificate, key: key.serialize_pem() })
        };
        let name = random_name()?;
        let names = vec![name.clone(), address.to_string()];
        Ok(Self {
            name,
            ca: ca_pem,
            serving: pair(names, "proxy-agent", ExtendedKeyUsagePurpose::ServerAuth)?,
            client: pair(Vec::new(), "kube-proxy", ExtendedKeyUsagePurpose::ClientAuth)?,
        })
    }

    /// Returns the server's TLS configuration. The handshake fails for a client without the client
    /// certificate.
    pub(crate) fn tls(&self) -> Result<Arc<ServerConfig>, ServingError> {
        let bad = |reason: String| rustls::Error::General(reason);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        for certificate in parse_certificates(self.ca.as_bytes()).map_err(bad)? {
            roots.add(certificate)?;
        }
        let clients = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone()).build()?;
        let chain = parse_certificates(self.serving.certificate.as_bytes()).map_err(bad)?;
        let key = PrivateKeyDer::from_pem_slice(self.serving.key.as_bytes());
        let mut tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(clients)
            .with_single_cert(chain, key.map_err(|error| bad(error.to_string()))?)?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        // kube-proxy does not resume sessions, so the agent stores none.
        tls.session_storage = Arc::new(NoServerSessionStorage {});
        tls.send_tls13_tickets = 0;
        Ok(Arc::new(tls))
    }
}

fn random_name() -> Result<String, rustls::Error> {
    let mut random = [0; 16];
    let source = rustls::crypto::ring::default_provider().secure_random;
    source.fill(&mut random).map_err(|_| rustls::Error::FailedToGetRandomBytes)?;
    Ok(format!("{:032x}.proxy-agent.internal", u128::from_be_bytes(random)))
}
