//! A kernel for virtual machines, with features that do not depend on the host's: Debian's cloud
//! kernel. It is never installed on the host.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Progress, ProvisionError, debian, package};
use crate::command;

/// The meta package, which depends on the current kernel's package.
const META_PACKAGE: &str = "linux-image-cloud-amd64";

/// An unpacked kernel.
#[derive(Debug, Clone)]
pub(crate) struct Kernel {
    /// The kernel image.
    pub(crate) image: PathBuf,
    /// The modules directory, with the indexes that `modprobe` reads. Its last path component is
    /// the kernel's release.
    pub(crate) modules: PathBuf,
}

/// Returns the cached kernel, or downloads it.
pub(super) fn ensure(cache: &Path, progress: Progress) -> Result<Kernel, ProvisionError> {
    let kernels = cache.join("kernels");
    let directory = package::ensure(&kernels, || fetch(&kernels, progress))?;
    let modules = package::only(&directory.join("lib/modules"))?;
    let release = modules.file_name().unwrap_or_default().to_string_lossy();
    Ok(Kernel { image: directory.join(format!("boot/vmlinuz-{release}")), modules })
}

fn fetch(kernels: &Path, progress: Progress) -> Result<(), ProvisionError> {
    progress("downloading Debian's kernel for virtual machines");
    let apt = debian::find("apt-get").ok_or_else(|| no_kernel(kernels, "this machine has no apt-get"))?;
    package::update(&apt)?;
    let mut show = Command::new("apt-cache");
    let printed = command::run(show.args(["show", "--no-all-versions", META_PACKAGE]))
        .map_err(|error| no_kernel(kernels, &error.to_string()))?;
    let (name, version) =
        depended_on(&printed.stdout).ok_or_else(|| no_kernel(kernels, "the package depends on no kernel"))?;
    package::unpack(&apt, &format!("{name}={version}"), kernels, |tree| {
        let modules = package::only(&tree.join("lib/modules"))?;
        let release = modules.file_name().unwrap_or_default();
        command::run(Command::new("depmod").arg("--basedir").arg(tree).arg(release))?;
        Ok(())
    })
}

/// Parses the kernel's package and version from the output of `apt-cache show` for the meta
/// package.
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
}
