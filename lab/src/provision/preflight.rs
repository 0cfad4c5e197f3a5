//! Checks before a long build, so that it does not fail after twenty minutes.

use std::path::Path;
use std::process::Command;

use nix::sys::statvfs::statvfs;

use super::ProvisionError;
use crate::command;

const GO: &str = "1.26";
/// Space for Go's module and build caches and for the programs, in MiB.
const BUILD_MIB: u64 = 18_000;
/// Space for the logs, images and data of one cluster, in MiB.
const LAB_MIB: u64 = 2_000;

/// Checks the free space for building everything.
pub(super) fn disk_for_building(cache: &Path) -> Result<(), ProvisionError> {
    disk(cache, BUILD_MIB, "build the cluster's programs")
}

/// Checks the free space for running a lab in `directory`.
pub(crate) fn disk_for_lab(directory: &Path) -> Result<(), ProvisionError> {
    disk(directory, LAB_MIB, "run a lab")
}

fn disk(path: &Path, need: u64, what: &'static str) -> Result<(), ProvisionError> {
    let stat = statvfs(path)
        .map_err(|errno| ProvisionError::File { path: path.to_owned(), source: errno.into() })?;
    let free = stat.blocks_available() * stat.fragment_size() / (1 << 20);
    if free < need {
        return Err(ProvisionError::Disk { path: path.to_owned(), free, need, what });
    }
    Ok(())
}

/// Whether this user can create user namespaces.
pub(super) fn user_namespaces() -> bool {
    command::run(Command::new("unshare").args(["--user", "--map-root-user", "--net", "--", "true"])).is_ok()
}

/// Checks that a recent enough Go is installed.
pub(super) fn go(what: &str) -> Result<(), ProvisionError> {
    let fail = |found: String| ProvisionError::Go { found, what: what.to_owned(), need: GO };
    let version = command::run(Command::new("go").args(["env", "GOVERSION"]))
        .map_err(|_| fail("`go` was not found".to_owned()))?;
    let version = version.stdout.trim();
    if new_enough(version) { Ok(()) } else { Err(fail(format!("`go` is {version}"))) }
}

fn new_enough(version: &str) -> bool {
    let numbers = |text: &str| -> Option<(u32, u32)> {
        let mut parts = text.strip_prefix("go").unwrap_or(text).split('.');
        let major = parts.next()?.parse().ok()?;
        let minor = parts.next()?;
        let digits = minor.find(|c: char| !c.is_ascii_digit()).unwrap_or(minor.len());
        Some((major, minor[..digits].parse().ok()?))
    };
    numbers(version) >= numbers(GO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_releases_are_compared_by_number() {
        for (version, enough) in
            [("go1.26.8", true), ("go1.27rc1", true), ("go2.0", true), ("go1.9", false), ("devel", false)]
        {
            assert_eq!(new_enough(version), enough, "{version}");
        }
    }

    #[test]
    fn a_full_disk_is_named_with_what_it_takes() {
        let error = disk(Path::new("/"), u64::MAX, "run a lab").unwrap_err().to_string();
        assert!(error.starts_with("/ has ") && error.contains("ISP_CACHE_DIR"), "{error}");
    }
}
