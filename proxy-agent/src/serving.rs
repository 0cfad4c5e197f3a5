//! The agent's own certificate, and the kubeconfig by which kube-proxy finds the agent and knows it. The files are
//! readable by their owner alone, in a directory that only the two containers of the pod share, and go with the pod.
//!
//! An agent that is started again in the same pod takes the certificate that is there: kube-proxy reads its
//! authority once, at its own start, and would not know another.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kube::config::Kubeconfig;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;

use crate::upstream::{certificates, way_out};

/// Why the agent cannot serve.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ServingError {
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    #[error("cannot use the certificate: {0}")]
    Tls(#[from] rustls::Error),
    #[error("cannot write {}: {source}; it must be a directory that this container may write to", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot read kube-proxy's kubeconfig {}: {source}; {}", path.display(), way_out(source))]
    Original { path: PathBuf, source: Box<kube::config::KubeconfigError> },
    #[error("cannot write a kubeconfig for kube-proxy: {0}")]
    Kubeconfig(#[from] serde_json::Error),
}

/// A certificate for the loopback address, from an authority of its own.
pub(crate) struct Identity {
    pub(crate) tls: Arc<ServerConfig>,
}

const AUTHORITY: &str = "ca.crt";
const CERTIFICATE: &str = "serving.crt";
const KEY: &str = "serving.key";

impl Identity {
    /// The identity that is in the directory, or a new one.
    pub(crate) fn at(directory: &Path, address: SocketAddr) -> Result<Self, ServingError> {
        if let Some(earlier) = Self::read(directory) {
            return Ok(earlier);
        }
        let authority_key = KeyPair::generate()?;
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.distinguished_name.push(DnType::CommonName, "proxy-agent");
        let authority_pem = authority.self_signed(&authority_key)?.pem();
        let issuer = Issuer::new(authority, authority_key);

        let key = KeyPair::generate()?;
        let leaf = CertificateParams::new(vec![address.ip().to_string()])?.signed_by(&key, &issuer)?;
        write(&directory.join(KEY), &key.serialize_pem())?;
        write(&directory.join(CERTIFICATE), &leaf.pem())?;
        write(&directory.join(AUTHORITY), &authority_pem)?;
        let tls = server(vec![leaf.der().clone()], private_key(&key.serialize_pem())?)?;
        Ok(Self { tls })
    }

    /// What an earlier start left; none when it is not whole.
    fn read(directory: &Path) -> Option<Self> {
        let text = |file| fs::read_to_string(directory.join(file)).ok();
        text(AUTHORITY)?;
        let (certificate, key) = (text(CERTIFICATE)?, text(KEY)?);
        let chain = certificates(certificate.as_bytes()).ok()?;
        Some(Self { tls: server(chain, private_key(&key).ok()?).ok()? })
    }
}

/// What kube-proxy sees of the agent's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Files {
    /// All of it, in the place of its own directory.
    All,
    /// The kubeconfig, on top of its own.
    Kubeconfig,
}

/// Writes the kubeconfig that kube-proxy sees in the place of its own, with another server and authority, and every other file of its
/// directory as it is, where kube-proxy would not see it otherwise. Who it is stays as it was. Files that are as they should be are not
/// touched: kube-proxy ends when its configuration is written anew.
pub(crate) fn mirror(
    kubeconfig: &Path,
    address: SocketAddr,
    directory: &Path,
    files: Files,
) -> Result<(), ServingError> {
    let mut config = Kubeconfig::read_from(kubeconfig)
        .map_err(|source| ServingError::Original { path: kubeconfig.to_owned(), source: Box::new(source) })?;
    let authority = read(&directory.join(AUTHORITY))?;
    for cluster in config.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        cluster.server = Some(format!("https://{address}"));
        cluster.certificate_authority = None;
        cluster.certificate_authority_data = Some(base64(authority.as_bytes())?);
        cluster.tls_server_name = None;
    }
    let name = kubeconfig.file_name().unwrap_or_default();
    if files == Files::All {
        copy_others(kubeconfig, directory)?;
    }
    update(&directory.join(name), &format!("{:#}\n", serde_json::to_value(&config)?))
}

fn copy_others(kubeconfig: &Path, directory: &Path) -> Result<(), ServingError> {
    let name = kubeconfig.file_name().unwrap_or_default();
    let parent = kubeconfig.parent().unwrap_or(kubeconfig);
    let fail = |source| ServingError::Read { path: parent.to_owned(), source };
    for entry in fs::read_dir(parent).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        // What begins with two dots is how a ConfigMap is laid out, not what it holds.
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if !hidden && entry.file_name() != name && entry.path().is_file() {
            update(&directory.join(entry.file_name()), &read(&entry.path())?)?;
        }
    }
    Ok(())
}

/// The encoding that kubeconfigs use, by the type that Kubernetes' own objects use for it.
fn base64(bytes: &[u8]) -> Result<String, serde_json::Error> {
    serde_json::from_value(serde_json::to_value(k8s_openapi::ByteString(bytes.to_vec()))?)
}

fn read(path: &Path) -> Result<String, ServingError> {
    fs::read_to_string(path).map_err(|source| ServingError::Read { path: path.to_owned(), source })
}

fn update(path: &Path, content: &str) -> Result<(), ServingError> {
    if fs::read_to_string(path).is_ok_and(|present| present == content) {
        Ok(())
    } else {
        write(path, content)
    }
}

fn server(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ServerConfig>, ServingError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(tls))
}

fn private_key(pem: &str) -> Result<PrivateKeyDer<'static>, ServingError> {
    let key = PrivateKeyDer::from_pem_slice(pem.as_bytes());
    Ok(key.map_err(|error| rustls::Error::General(error.to_string()))?)
}

/// Whoever reads the file sees all of it or none.
fn write(path: &Path, content: &str) -> Result<(), ServingError> {
    let partial = path.with_extension("partial");
    let written = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&partial)
        .and_then(|mut file| file.write_all(content.as_bytes()))
        .and_then(|()| fs::rename(&partial, path));
    written.map_err(|source| ServingError::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests;
