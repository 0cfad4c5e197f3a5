//! Errors of building an image.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Why an image cannot be built. Each message names the file and how to fix the problem.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the host, or the archive, cannot be read or written.
    #[error("cannot {action} {}: {source}; check that it is there, who may use it, and the free disk space", path.display())]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// `ldd` cannot be started.
    #[error("cannot run ldd to find the libraries of {}: {source}; install it (Debian: libc-bin)", program.display())]
    Ldd {
        /// One of the programs it was needed for.
        program: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// `ldd` failed for a program.
    #[error(
        "ldd cannot tell the libraries of {programs}: {said}; they may be built for another machine or libc"
    )]
    LddFailed {
        /// All programs it was run for.
        programs: String,
        /// Its output.
        said: String,
    },
    /// A library is not installed.
    #[error("{} needs the library {library}, which is not on this machine; install its package", program.display())]
    MissingLibrary {
        /// The program that needs it.
        program: PathBuf,
        /// The library's name.
        library: String,
    },
    /// The file added as a program is not ELF, such as a script or a data file.
    #[error("{} is not an ELF program, so it has no libraries to find; add it as a file", program.display())]
    NotElf {
        /// The file.
        program: PathBuf,
    },
    /// A path in the image is not absolute, or contains `..`.
    #[error("{} cannot be a path in an image; it must be absolute and without '..'", path.display())]
    Destination {
        /// The path.
        path: PathBuf,
    },
    /// Two different entries have the same path.
    #[error("the image would hold two different things at {}: {one} and {other}; leave one out", path.display())]
    Conflict {
        /// The path in the image.
        path: PathBuf,
        /// The first entry.
        one: String,
        /// The second entry.
        other: String,
    },
    /// Symbolic links form a loop.
    #[error("the links above {} lead in a circle; correct their targets", path.display())]
    LinkLoop {
        /// The path that leads into the loop.
        path: PathBuf,
    },
    /// A file changed its size while it was read.
    #[error("{} changed while it was being read; try again when nothing writes to it", path.display())]
    Changed {
        /// The file on the host.
        path: PathBuf,
    },
}

/// Adds the action and the path to an I/O error.
pub(super) fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { action, path, source }
}
