//! axe-core, the usual checker of accessibility. Its project publishes it as an npm package; the
//! checksum is pinned.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::read::GzDecoder;

use super::{Progress, ProvisionError};
use crate::command;
use crate::image::digest::Digest;

const VERSION: &str = "4.10.3";
/// The digest of the package.
const SHA256: &str = "0f2b4d7dcdf7d1219df8d1959ad68e565f51d14c3f0d88bb71cd59abeb956292";
const SCRIPT: &str = "package/axe.min.js";

/// The path of the script, downloaded if it is not in the cache.
pub(super) fn ensure(cache: &Path, progress: Progress) -> Result<PathBuf, ProvisionError> {
    let directory = cache.join(format!("axe-core-{VERSION}"));
    let path = directory.join("axe.min.js");
    if path.is_file() {
        return Ok(path);
    }
    progress(&format!("downloading axe-core {VERSION}"));
    let fail = |source| ProvisionError::File { path: path.clone(), source };
    fs::create_dir_all(&directory).map_err(fail)?;
    let partial = tempfile::tempdir_in(&directory).map_err(fail)?;
    let package = partial.path().join("package.tgz");
    let address = format!("https://registry.npmjs.org/axe-core/-/axe-core-{VERSION}.tgz");
    let mut curl = Command::new("curl");
    curl.args(["--fail", "--silent", "--show-error", "--location", "--retry", "3", "--max-time", "300"]);
    command::run(curl.arg("--output").arg(&package).arg(&address))?;
    let script = script(&fs::read(&package).map_err(fail)?, &path)?;
    let whole = partial.path().join("axe.min.js");
    fs::write(&whole, script).map_err(fail)?;
    fs::rename(&whole, &path).map_err(fail)?;
    Ok(path)
}

/// The script in the package, whose digest must be the pinned one.
fn script(package: &[u8], place: &Path) -> Result<Vec<u8>, ProvisionError> {
    let found = Digest::of(package).hex().to_owned();
    if found != SHA256 {
        let what = format!("axe-core {VERSION}");
        return Err(ProvisionError::Digest { what, found, wanted: SHA256, place: place.to_owned() });
    }
    let fail = |source| ProvisionError::File { path: place.to_owned(), source };
    let mut archive = tar::Archive::new(GzDecoder::new(package));
    for entry in archive.entries().map_err(fail)? {
        let mut entry = entry.map_err(fail)?;
        if entry.path().map_err(fail)?.as_os_str() == SCRIPT {
            let mut text = Vec::new();
            entry.read_to_end(&mut text).map_err(fail)?;
            return Ok(text);
        }
    }
    Err(fail(std::io::ErrorKind::NotFound.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_download_is_refused_with_its_digest() {
        let refused = script(b"something else", Path::new("/cache/axe.min.js")).unwrap_err().to_string();
        assert!(refused.contains(SHA256) && refused.contains("/cache/axe.min.js"), "{refused}");
    }
}
