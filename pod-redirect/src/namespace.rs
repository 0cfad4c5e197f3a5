//! The facts about this namespace that the rules depend on, read from `/proc` and `/sys`.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use isp_dataplane::nft::Family;
use thiserror::Error;

const IPV6_INTERFACES: &str = "/proc/sys/net/ipv6/conf";
const MOUNTS: &str = "/proc/self/mountinfo";

/// Why the namespace could not be read.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum NamespaceError {
    #[error("cannot read {}: {source}; mount /proc in this container", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error(
        "--exempt-cgroups={path}: no control group hierarchy of version 2 is mounted here; exempt the proxy by its \
         UID, GID or mark, or mount the hierarchy of the node"
    )]
    NoHierarchy { path: String },
    #[error("--exempt-cgroups={path}: {} cannot be read: {source}; create the group before this program runs", place.display())]
    NoCgroup { path: String, place: PathBuf, source: io::Error },
}

/// The families that the namespace uses.
pub(crate) fn families() -> Result<Vec<Family>, NamespaceError> {
    let enabled = has_ipv6(Path::new(IPV6_INTERFACES))?;
    Ok(Family::ALL.into_iter().filter(|family| *family == Family::Ip || enabled).collect())
}

/// Whether an interface has IPv6. A kernel without IPv6 has no such directory.
fn has_ipv6(interfaces: &Path) -> Result<bool, NamespaceError> {
    let failed = |path: &Path, source| NamespaceError::Read { path: path.to_owned(), source };
    let entries = match fs::read_dir(interfaces) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed(interfaces, error)),
    };
    for entry in entries {
        let path = entry.map_err(|error| failed(interfaces, error))?.path();
        // These two are no interfaces.
        if path.ends_with("all") || path.ends_with("default") {
            continue;
        }
        let path = path.join("disable_ipv6");
        if fs::read_to_string(&path).map_err(|error| failed(&path, error))?.trim() == "0" {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The kernel's number of a control group: that of its directory.
pub(crate) fn cgroup_id(path: &str) -> Result<u64, NamespaceError> {
    let read = fs::read_to_string(MOUNTS);
    let mounts = read.map_err(|source| NamespaceError::Read { path: MOUNTS.into(), source })?;
    let root = hierarchy(&mounts).ok_or_else(|| NamespaceError::NoHierarchy { path: path.to_owned() })?;
    let place = root.join(path);
    match fs::metadata(&place) {
        Ok(found) => Ok(found.ino()),
        Err(source) => Err(NamespaceError::NoCgroup { path: path.to_owned(), place, source }),
    }
}

/// Where the hierarchy of version 2 is mounted. The fifth field of a line is the place; the type of
/// the file system follows a hyphen.
fn hierarchy(mounts: &str) -> Option<PathBuf> {
    let place = mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let is_ours = kind.split_whitespace().next() == Some("cgroup2");
        mount.split_whitespace().nth(4).filter(|_| is_ours)
    });
    place.map(PathBuf::from)
}

#[cfg(test)]
mod tests;
