//! A kernel for virtual machines, whose features do not depend on the host's: Debian's for clouds. Its package is
//! unpacked in the cache and not installed, so the host's own kernels stay as they are. Debian keeps no old versions to
//! pin; the one that was fetched first stays in use.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Progress, ProvisionError, debian};
use crate::command;

/// Depends on the package of the current kernel.
const META_PACKAGE: &str = "linux-image-cloud-amd64";

/// An unpacked kernel.
#[derive(Debug, Clone)]
pub(crate) struct Kernel {
    /// What is started.
    pub(crate) image: PathBuf,
    /// Its modules, with the indexes that `modprobe` reads; the last part of the path is the kernel's release.
    pub(crate) modules: PathBuf,
}

/// Where the kernel is, fetched when the cache has none.
pub(super) fn ensure(cache: &Path, progress: Progress) -> Result<Kernel, ProvisionError> {
    let kernels = cache.join("kernels");
    let fail = |source| ProvisionError::File { path: kernels.clone(), source };
    fs::create_dir_all(&kernels).map_err(fail)?;
    let mut directory = unpacked(&kernels).map_err(fail)?;
    if directory.is_none() {
        fetch(&kernels, progress)?;
        directory = unpacked(&kernels).map_err(fail)?;
    }
    let directory = directory.ok_or_else(|| fail(io::ErrorKind::NotFound.into()))?;
    let modules = only(&directory.join("lib/modules"))?;
    let release = modules.file_name().unwrap_or_default().to_string_lossy();
    Ok(Kernel { image: directory.join(format!("boot/vmlinuz-{release}")), modules })
}

/// The newest by name; directories with a dot are being filled.
fn unpacked(kernels: &Path) -> io::Result<Option<PathBuf>> {
    let names = fs::read_dir(kernels)?.map(|entry| Ok(entry?.file_name()));
    let names = names.collect::<io::Result<Vec<_>>>()?;
    let complete = names.into_iter().filter(|name| !name.as_encoded_bytes().starts_with(b"."));
    Ok(complete.max().map(|name| kernels.join(name)))
}

fn fetch(kernels: &Path, progress: Progress) -> Result<(), ProvisionError> {
    progress("fetching Debian's kernel for virtual machines");
    let apt = debian::find("apt-get").ok_or_else(|| no_kernel(kernels, "there is no apt-get here"))?;
    command::run(Command::new(&apt).args(["update", "-qq"]))?;
    let mut show = Command::new("apt-cache");
    let printed = command::run(show.args(["show", "--no-all-versions", META_PACKAGE]))
        .map_err(|error| no_kernel(kernels, &error.to_string()))?;
    let (package, version) =
        depended_on(&printed.stdout).ok_or_else(|| no_kernel(kernels, "it depends on no kernel"))?;

    let fail = |source| ProvisionError::File { path: kernels.to_owned(), source };
    let partial = tempfile::Builder::new().prefix(".").tempdir_in(kernels).map_err(fail)?;
    let (download, tree) = (partial.path().join("download"), partial.path().join("tree"));
    fs::create_dir(&download).map_err(fail)?;
    // Apt fetches as a user of its own, who may not write here; what it fetched it checks in any case.
    command::run(
        Command::new(&apt)
            .args(["download", "-qq", "-o", "APT::Sandbox::User=root"])
            .arg(format!("{package}={version}"))
            .current_dir(&download),
    )?;
    command::run(Command::new("dpkg-deb").arg("--extract").arg(only(&download)?).arg(&tree))?;
    let modules = only(&tree.join("lib/modules"))?;
    let release = modules.file_name().unwrap_or_default();
    command::run(Command::new("depmod").arg("--basedir").arg(&tree).arg(release))?;
    let place = kernels.join(format!("{package}_{version}"));
    match fs::rename(&tree, &place) {
        // Another process was faster.
        Err(_) if place.is_dir() => Ok(()),
        renamed => renamed.map_err(fail),
    }
}

/// The only entry of a directory.
fn only(directory: &Path) -> Result<PathBuf, ProvisionError> {
    let fail = |source| ProvisionError::File { path: directory.to_owned(), source };
    let mut entries = fs::read_dir(directory).map_err(fail)?;
    let first = entries.next().ok_or_else(|| fail(io::ErrorKind::NotFound.into()))?;
    Ok(first.map_err(fail)?.path())
}

/// The package and version of the kernel, from what `apt-cache show` prints of the meta package.
fn depended_on(shown: &str) -> Option<(&str, &str)> {
    let depends = shown.lines().find_map(|line| line.strip_prefix("Depends: "))?;
    depends.split(", ").find_map(|dependency| {
        let (package, version) = dependency.trim().split_once(" (= ")?;
        Some((package, version.strip_suffix(')')?)).filter(|_| package.starts_with("linux-image-"))
    })
}

fn no_kernel(kernels: &Path, reason: &str) -> ProvisionError {
    ProvisionError::NoKernel { place: kernels.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_read_off_the_meta_package() {
        let shown = "Package: linux-image-cloud-amd64\nVersion: 6.1.190-1\n\
                     Depends: initramfs-tools, linux-image-6.1.0-54-cloud-amd64 (= 6.1.190-1)\nSize: 1\n";
        assert_eq!(depended_on(shown), Some(("linux-image-6.1.0-54-cloud-amd64", "6.1.190-1")));
        assert_eq!(depended_on("Package: linux-image-cloud-amd64\n"), None);
    }

    #[test]
    fn a_kernel_that_is_being_unpacked_is_not_taken() {
        let kernels = tempfile::tempdir().unwrap();
        fs::create_dir(kernels.path().join(".partial")).unwrap();
        assert_eq!(unpacked(kernels.path()).unwrap(), None);
        fs::create_dir(kernels.path().join("linux_1")).unwrap();
        assert_eq!(unpacked(kernels.path()).unwrap(), Some(kernels.path().join("linux_1")));
    }
}
