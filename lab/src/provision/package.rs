//! Debian packages that are unpacked in the cache instead of installed: the host must not get
//! another kernel, or a running server. Debian keeps no old versions to pin, so the first
//! downloaded version stays in use.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::ProvisionError;
use crate::command;

/// Returns the package unpacked in `place`, or fetches it if there is none.
pub(super) fn ensure(
    place: &Path,
    fetch: impl FnOnce() -> Result<(), ProvisionError>,
) -> Result<PathBuf, ProvisionError> {
    let fail = |source| ProvisionError::File { path: place.to_owned(), source };
    fs::create_dir_all(place).map_err(fail)?;
    if let Some(there) = unpacked(place).map_err(fail)? {
        return Ok(there);
    }
    fetch()?;
    unpacked(place).map_err(fail)?.ok_or_else(|| fail(io::ErrorKind::NotFound.into()))
}

/// The last directory by name. Directories with a leading dot are incomplete.
fn unpacked(place: &Path) -> io::Result<Option<PathBuf>> {
    let names = fs::read_dir(place)?.map(|entry| Ok(entry?.file_name()));
    let names = names.collect::<io::Result<Vec<_>>>()?;
    let complete = names.into_iter().filter(|name| !name.as_encoded_bytes().starts_with(b"."));
    Ok(complete.max().map(|name| place.join(name)))
}

/// Updates apt's package lists.
pub(super) fn update(apt: &Path) -> Result<(), ProvisionError> {
    command::run(Command::new(apt).args(["update", "-qq"]))?;
    Ok(())
}

/// Downloads a package, named in apt's syntax, and unpacks it in `place`. It becomes visible there
/// only after `finish` has succeeded.
pub(super) fn unpack(
    apt: &Path,
    package: &str,
    place: &Path,
    finish: impl FnOnce(&Path) -> Result<(), ProvisionError>,
) -> Result<(), ProvisionError> {
    let fail = |source| ProvisionError::File { path: place.to_owned(), source };
    let partial = tempfile::Builder::new().prefix(".").tempdir_in(place).map_err(fail)?;
    let (download, tree) = (partial.path().join("download"), partial.path().join("tree"));
    fs::create_dir(&download).map_err(fail)?;
    // apt normally downloads as its own user, which cannot write here. It verifies the download
    // either way.
    command::run(
        Command::new(apt)
            .args(["download", "-qq", "-o", "APT::Sandbox::User=root"])
            .arg(package)
            .current_dir(&download),
    )?;
    command::run(Command::new("dpkg-deb").arg("--extract").arg(only(&download)?).arg(&tree))?;
    finish(&tree)?;
    let whole = place.join(package.replace('=', "_"));
    match fs::rename(&tree, &whole) {
        // Another process was faster.
        Err(_) if whole.is_dir() => Ok(()),
        renamed => renamed.map_err(fail),
    }
}

/// The only entry of a directory.
pub(super) fn only(directory: &Path) -> Result<PathBuf, ProvisionError> {
    let fail = |source| ProvisionError::File { path: directory.to_owned(), source };
    let mut entries = fs::read_dir(directory).map_err(fail)?;
    let first = entries.next().ok_or_else(|| fail(io::ErrorKind::NotFound.into()))?;
    Ok(first.map_err(fail)?.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_being_unpacked_is_not_taken() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join(".partial")).unwrap();
        assert_eq!(unpacked(place.path()).unwrap(), None);
        fs::create_dir(place.path().join("linux_1")).unwrap();
        assert_eq!(unpacked(place.path()).unwrap(), Some(place.path().join("linux_1")));
    }

    #[test]
    fn what_is_there_is_not_fetched_again_and_what_was_fetched_must_be_there() {
        let place = tempfile::tempdir().unwrap();
        let fetched = ensure(place.path(), || Ok(()));
        assert!(matches!(fetched, Err(ProvisionError::File { .. })), "{fetched:?}");
        let whole = place.path().join("linux_1");
        let fetched = ensure(place.path(), || {
            fs::create_dir(&whole).unwrap();
            Ok(())
        });
        assert_eq!(fetched.unwrap(), whole);
        assert_eq!(ensure(place.path(), || panic!("fetched again")).unwrap(), whole);
    }
}
