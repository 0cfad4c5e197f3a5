//! Builds programs as they are shipped: with the profile `dist`, for a platform, and without paths
//! of this machine in them. The same sources and toolchain give the same bytes in every directory.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, ProcessError};
use crate::workspace::Workspace;

#[cfg(test)]
mod tests;

/// A platform that programs are shipped for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Platform {
    Amd64,
    Arm64,
}

impl Platform {
    pub(crate) const ALL: [Self; 2] = [Self::Amd64, Self::Arm64];

    /// The platform of this machine.
    pub(crate) fn host() -> Self {
        if cfg!(target_arch = "aarch64") { Self::Arm64 } else { Self::Amd64 }
    }

    /// The architecture in the terms of OCI and Go.
    pub(crate) fn architecture(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// Rust's name of the platform.
    pub(crate) fn tuple(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-gnu",
            Self::Arm64 => "aarch64-unknown-linux-gnu",
        }
    }

    /// Debian's cross linker for the platform.
    fn cross_linker(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-linux-gnu-gcc",
            Self::Arm64 => "aarch64-linux-gnu-gcc",
        }
    }

    /// Cargo's variable with the linker for the platform.
    fn linker_variable(self) -> String {
        format!("CARGO_TARGET_{}_LINKER", self.tuple().to_uppercase().replace('-', "_"))
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "linux/{}", self.architecture())
    }
}

/// How a program gets the C library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Linking {
    /// It is part of the program, which then needs no other file.
    Static,
    /// The machine that runs the program has it, and with it its ways of resolving names.
    Dynamic,
}

impl Linking {
    /// The directory for build output. Cargo keeps the crates of one set of flags only, so each way
    /// of linking has its own directory.
    fn directory(self, target: &Path) -> PathBuf {
        target.join(match self {
            Self::Static => "static",
            Self::Dynamic => "dynamic",
        })
    }
}

/// The platforms that this toolchain can build for: those whose standard library is installed.
pub(crate) fn installed() -> Result<Vec<Platform>, ProcessError> {
    let printed = process::capture(Command::new("rustc").args(["--print", "sysroot"]))?;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&printed).trim());
    Ok(Platform::ALL.into_iter().filter(|platform| is_installed(&sysroot, *platform)).collect())
}

fn is_installed(sysroot: &Path, platform: Platform) -> bool {
    sysroot.join("lib/rustlib").join(platform.tuple()).join("lib").is_dir()
}

/// Builds programs and returns their paths, in the same order.
pub(crate) fn build(
    workspace: &Workspace,
    platform: Platform,
    linking: Linking,
    programs: &[String],
) -> Result<Vec<PathBuf>, ProcessError> {
    let mut cargo = process::cargo(&workspace.root);
    // A named target, even for this machine: the flags then do not reach procedural macros, which
    // cannot be static.
    cargo.args(["build", "--profile=dist", "--locked", "--target", platform.tuple()]);
    cargo.args(programs.iter().flat_map(|program| ["--bin", program]));
    let target = linking.directory(workspace.target());
    cargo.arg("--target-dir").arg(&target);
    let home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")));
    let flags = flags(linking, &workspace.root, home.as_deref(), &target);
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    let linker = platform.linker_variable();
    if platform != Platform::host() && env::var_os(&linker).is_none() {
        cargo.env(linker, platform.cross_linker());
    }
    process::run(&mut cargo)?;
    let built = target.join(platform.tuple()).join("dist");
    Ok(programs.iter().map(|program| built.join(program)).collect())
}

/// The flags of rustc. Panic messages name source files, so the directories of this machine are
/// replaced in them. Of several matching directories, rustc takes the last one.
fn flags(linking: Linking, root: &Path, cargo_home: Option<&Path>, target: &Path) -> Vec<String> {
    let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let mut flags = match linking {
        Linking::Static => vec!["-Ctarget-feature=+crt-static".to_owned()],
        Linking::Dynamic => Vec::new(),
    };
    flags.push(remap(root, "/src"));
    flags.extend(cargo_home.map(|home| remap(home, "/cargo")));
    flags.push(remap(target, "/target"));
    flags
}
