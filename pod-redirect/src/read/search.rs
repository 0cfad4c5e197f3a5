//! The network namespaces of a node, and the one that has an address.

use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::thread;

use isp_kernel::{Lister, SocketError};
use isp_pod_rules::routing::has_address;
use nix::sched::{CloneFlags, setns};
use thiserror::Error;

/// Why the namespace of the pod was not found.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum SearchError {
    #[error(
        "cannot list the network namespaces in {}: {source}; mount the directory in which the container runtime of \
         the node keeps them, and name it with --namespaces", directory.display()
    )]
    Directory { directory: PathBuf, source: io::Error },
    #[error(
        "none of the {searched} network namespaces in {} has the address {address}{}; the pod may have ended, or the \
         container runtime keeps its namespaces elsewhere: name the directory with --namespaces",
        directory.display(), not_searched(.closed)
    )]
    NotFound { address: IpAddr, directory: PathBuf, searched: usize, closed: Vec<String> },
    #[error("the thread that reads {} could not be started or ended early: {reason}", path.display())]
    Thread { path: PathBuf, reason: String },
}

/// The namespaces that could not be searched.
fn not_searched(reasons: &[String]) -> String {
    match reasons {
        [] => String::new(),
        [first, ..] => format!("; {} of them could not be searched ({first})", reasons.len()),
    }
}

/// Why a namespace could not be searched.
#[derive(Debug, Error)]
enum Closed {
    #[error("cannot open {}: {source}", path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error("cannot enter {}: {source}, this needs CAP_SYS_ADMIN", path.display())]
    Enter { path: PathBuf, source: io::Error },
    #[error("cannot list the addresses of {}: {source}", path.display())]
    Addresses { path: PathBuf, source: SocketError },
}

/// Files that are network namespaces.
pub(super) struct Namespaces {
    directory: PathBuf,
    files: Vec<PathBuf>,
}

impl Namespaces {
    pub(super) fn list(directory: &Path) -> Result<Self, SearchError> {
        let failed = |source| SearchError::Directory { directory: directory.to_owned(), source };
        let entries = fs::read_dir(directory).map_err(failed)?;
        let mut files = entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(failed)?;
        files.sort();
        Ok(Self { directory: directory.to_owned(), files })
    }

    /// Calls the function in the namespace that has the address.
    pub(super) fn of<T: Send>(
        self,
        address: IpAddr,
        read: impl Fn(&mut Lister) -> T + Sync,
    ) -> Result<T, SearchError> {
        let mut closed = Vec::new();
        for path in &self.files {
            // A thread that has entered a namespace cannot always return, so each gets its own.
            let searched = thread::scope(|scope| {
                let thread = thread::Builder::new().spawn_scoped(scope, || search(path, address, &read));
                let reason = |reason| SearchError::Thread { path: path.clone(), reason };
                let thread = thread.map_err(|error| reason(error.to_string()))?;
                thread.join().map_err(|_| reason("it panicked".to_owned()))
            })?;
            match searched {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => {}
                Err(error) => closed.push(error.to_string()),
            }
        }
        let Self { directory, files } = self;
        Err(SearchError::NotFound { address, directory, searched: files.len(), closed })
    }
}

fn search<T>(path: &Path, address: IpAddr, read: impl Fn(&mut Lister) -> T) -> Result<Option<T>, Closed> {
    let owned = || path.to_owned();
    let file = File::open(path).map_err(|source| Closed::Open { path: owned(), source })?;
    setns(file, CloneFlags::CLONE_NEWNET)
        .map_err(|errno| Closed::Enter { path: owned(), source: errno.into() })?;
    let unlisted = |source| Closed::Addresses { path: owned(), source };
    let mut lister = Lister::open().map_err(unlisted)?;
    let addresses = lister.addresses().map_err(unlisted)?;
    Ok(has_address(&addresses, address).then(|| read(&mut lister)))
}
