//! The directories on the host: built programs in the user's cache directory, running labs in the
//! user's state directory. Nothing else on the host is written.

use std::env;
use std::path::{Path, PathBuf};

use thiserror::Error;

const NAME: &str = "ingress-source-preserve";

/// Why a directory cannot be used.
#[derive(Debug, Error)]
pub enum DirsError {
    /// Neither `HOME` nor the variable is set.
    #[error("neither {0} nor HOME is set: set one, so that the lab knows where to keep its files")]
    NoHome(&'static str),
    /// The directory is under a path that nodes mount over.
    #[error(
        "{} is under {hidden}, which every node replaces with its own: set ISP_STATE_DIR and ISP_CACHE_DIR to directories outside it",
        path.display()
    )]
    Hidden {
        /// The directory.
        path: PathBuf,
        /// The path that nodes mount over.
        hidden: &'static str,
    },
}

/// Paths that each node mounts over with its own directories.
const COVERED: [&str; 3] = ["/run", "/var/lib", "/var/log"];

/// Built programs, images and image stores.
pub(crate) fn cache() -> Result<PathBuf, DirsError> {
    place("ISP_CACHE_DIR", "XDG_CACHE_HOME", ".cache")
}

/// One directory per running lab.
pub(crate) fn labs() -> Result<PathBuf, DirsError> {
    Ok(place("ISP_STATE_DIR", "XDG_STATE_HOME", ".local/state")?.join("labs"))
}

/// Logs of failed labs.
pub(crate) fn failures() -> Result<PathBuf, DirsError> {
    Ok(place("ISP_STATE_DIR", "XDG_STATE_HOME", ".local/state")?.join("failures"))
}

fn place(own: &'static str, xdg: &'static str, under_home: &str) -> Result<PathBuf, DirsError> {
    let path = if let Some(path) = absolute(own) {
        path
    } else if let Some(base) = absolute(xdg) {
        base.join(NAME)
    } else {
        absolute("HOME").ok_or(DirsError::NoHome(own))?.join(under_home).join(NAME)
    };
    visible_in_nodes(path)
}

fn visible_in_nodes(path: PathBuf) -> Result<PathBuf, DirsError> {
    match COVERED.into_iter().find(|covered| path.starts_with(Path::new(covered))) {
        Some(hidden) => Err(DirsError::Hidden { path, hidden }),
        None => Ok(path),
    }
}

fn absolute(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_nodes_cover_is_refused_with_the_way_out() {
        let error = visible_in_nodes("/var/lib/ci/labs".into()).unwrap_err().to_string();
        assert!(error.contains("/var/lib/ci/labs") && error.contains("ISP_STATE_DIR"), "{error}");
        assert_eq!(visible_in_nodes("/var/library".into()).unwrap(), Path::new("/var/library"));
    }
}
