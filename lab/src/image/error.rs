//! Errors of building an image.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Why an image cannot be built. Each message names the file and how to fix the problem.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum Error {
    #[error("cannot {action} {}: {source}; check the path, its permissions and the free disk space", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("cannot run ldd to find the libraries of {}: {source}; install it (Debian: libc-bin)", program.display())]
    Ldd { program: PathBuf, source: io::Error },
    #[error(
        "ldd cannot list the libraries of {programs}: {said}; they may be built for another architecture or libc"
    )]
    LddFailed { programs: String, said: String },
    #[error("{} needs the library {library}, which is not on this machine; install its package", program.display())]
    MissingLibrary { program: PathBuf, library: String },
    #[error("{} is not an ELF program, so it has no libraries to find; add it as a file", program.display())]
    NotElf { program: PathBuf },
    #[error("{} is built neither for x86-64 nor for arm64; build it for one of them", program.display())]
    Architecture { program: PathBuf },
    #[error("{} cannot be a path in an image; it must be absolute and without '..'", path.display())]
    Destination { path: PathBuf },
    #[error("the image would have two different entries at {}: {one} and {other}; remove one", path.display())]
    Conflict { path: PathBuf, one: String, other: String },
    #[error("the symbolic links above {} form a loop; correct their targets", path.display())]
    LinkLoop { path: PathBuf },
    #[error("{} changed while it was being read; try again when nothing writes to it", path.display())]
    Changed { path: PathBuf },
}

/// Adds the action and the path to an I/O error.
pub(super) fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { action, path, source }
}
