//! The files with which kube-proxy finds the agent and both authenticate each other. Only their
//! owner can read them, in a directory that only the two containers of the pod share. They are
//! deleted with the pod.
//!
//! `identity` makes the certificates, `mirror` writes the kubeconfig that hands them to kube-proxy.

mod identity;
mod mirror;

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

pub(crate) use self::identity::Identity;
pub(crate) use self::mirror::{MirrorScope, mirror};
use crate::filter::upstream::kubeconfig_hint;

/// Why the agent cannot serve kube-proxy.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum ServingError {
    #[error("cannot create a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    #[error("cannot use the certificate: {0}")]
    Tls(#[from] rustls::Error),
    #[error("cannot verify clients with the agent's own CA: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    #[error("cannot write {}: {source}; its directory must be writable for this container", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot read kube-proxy's kubeconfig {}: {source}; {}", path.display(), kubeconfig_hint(source))]
    Original { path: PathBuf, source: Box<kube::config::KubeconfigError> },
    #[error("cannot write a kubeconfig for kube-proxy: {0}")]
    Kubeconfig(#[from] serde_json::Error),
}

fn read(path: &Path) -> Result<String, ServingError> {
    fs::read_to_string(path).map_err(|source| ServingError::Read { path: path.to_owned(), source })
}

/// Writes a file atomically: readers see all of it or none.
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
