//! Why an image cannot be made.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Each names the file and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the host, or the archive, cannot be read or written.
    #[error("cannot {action} {}: {source}; check that it is there, who may use it, and the free disk space", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// `ldd` cannot be started.
    #[error("cannot run ldd to find the libraries of {}: {source}; install it (Debian: libc-bin)", program.display())]
    Ldd {
        /// One of the programs it was needed for.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// `ldd` found something wrong with a program.
    #[error(
        "ldd cannot tell the libraries of {programs}: {said}; they may be built for another machine or libc"
    )]
    LddFailed {
        /// All that it was asked about.
        programs: String,
        /// What it printed.
        said: String,
    },
    /// A library is not installed.
    #[error("{} needs the library {library}, which is not on this machine; install its package", program.display())]
    MissingLibrary {
        /// Who needs it.
        program: PathBuf,
        /// Its name.
        library: String,
    },
    /// A script or a data file was given as a program.
    #[error("{} is not an ELF program, so it has no libraries to find; add it as a file", program.display())]
    NotElf {
        /// What was given.
        program: PathBuf,
    },
    /// A path in the image that is not absolute, or goes up.
    #[error("{} cannot be a path in an image; it must be absolute and without '..'", path.display())]
    Destination {
        /// What was given.
        path: PathBuf,
    },
    /// Two different things at one path.
    #[error("the image would hold two different things at {}: {one} and {other}; leave one out", path.display())]
    Conflict {
        /// The path in the image.
        path: PathBuf,
        /// What was placed there first.
        one: String,
        /// What was to be placed there too.
        other: String,
    },
    /// Links that lead to each other.
    #[error("the links above {} lead in a circle; correct their targets", path.display())]
    LinkLoop {
        /// The path that leads there.
        path: PathBuf,
    },
    /// A file got shorter while it was read.
    #[error("{} changed while it was being read; try again when nothing writes to it", path.display())]
    Changed {
        /// The file on the host.
        path: PathBuf,
    },
}

/// Turns an I/O error into one that says what was done to which file.
pub(super) fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { action, path, source }
}
