//! How kube-proxy finds the agent, knows it and is known by it. The files are readable by their owner alone, in a directory that only
//! the two containers of the pod share, and go with the pod.
//!
//! `identity` makes the certificates, `mirror` the kubeconfig that carries them to kube-proxy.

mod identity;
mod mirror;

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

pub(crate) use self::identity::Identity;
pub(crate) use self::mirror::{Mirrored, mirror};
use crate::node::upstream::way_out;

/// Why the agent cannot serve.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ServingError {
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    #[error("cannot use the certificate: {0}")]
    Tls(#[from] rustls::Error),
    #[error("cannot verify callers by the agent's own authority: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    #[error("cannot write {}: {source}; it must be a directory that this container may write to", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot read kube-proxy's kubeconfig {}: {source}; {}", path.display(), way_out(source))]
    Original { path: PathBuf, source: Box<kube::config::KubeconfigError> },
    #[error("cannot write a kubeconfig for kube-proxy: {0}")]
    Kubeconfig(#[from] serde_json::Error),
}

fn read(path: &Path) -> Result<String, ServingError> {
    fs::read_to_string(path).map_err(|source| ServingError::Read { path: path.to_owned(), source })
}

/// Readers of the file see all of it or none.
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
