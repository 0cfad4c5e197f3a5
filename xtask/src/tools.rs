//! The tools that the checks need, installed if they are missing.
//!
//! cargo-deny is kept in the user's cache directory, by version, separate from the user's own
//! installation. rustfmt and clippy are toolchain components. make is a system package.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use thiserror::Error;

use crate::process::{self, ProcessError};

const CARGO_DENY: &str = "0.20.2";

/// A tool is missing and cannot be installed.
#[derive(Debug, Error)]
pub(crate) enum ToolError {
    #[error("{component} is missing: run `rustup component add {component}`")]
    Component { component: &'static str, source: ProcessError },
    #[error(
        "make is missing; the webhook's allocator is built with it: run `apt-get install make` as root, or install your distribution's package"
    )]
    Make { source: ProcessError },
    #[error("no place to keep tools and releases: set HOME or XDG_CACHE_HOME")]
    NoCache,
    #[error("cannot install cargo-deny {CARGO_DENY} in {}", into.display())]
    Install { into: PathBuf, source: ProcessError },
}

/// Ensures that `make` is installed; the build of an allocator calls it. A C compiler exists,
/// because it linked this program.
pub(crate) fn make() -> Result<(), ToolError> {
    if process::succeeds(Command::new("make").arg("--version")) {
        return Ok(());
    }
    // Standard output belongs to the command that the user runs.
    eprintln!("make is missing, installing Debian's package");
    let install = ["install", "-y", "-qq", "--no-install-recommends", "make"];
    [&["update", "-qq"][..], &install[..]]
        .into_iter()
        .try_for_each(|arguments| {
            let mut apt = Command::new("apt-get");
            apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
            process::run(apt.stdin(Stdio::null()).stdout(io::stderr()))
        })
        .map_err(|source| ToolError::Make { source })
}

/// Ensures that `cargo <subcommand>` works. It comes with a toolchain component.
pub(crate) fn component(
    root: &Path,
    subcommand: &'static str,
    component: &'static str,
) -> Result<(), ToolError> {
    if process::succeeds(process::cargo(root).args([subcommand, "--version"])) {
        return Ok(());
    }
    println!("{component} is missing, adding it to the toolchain");
    process::run(Command::new("rustup").current_dir(root).args(["component", "add", component]))
        .map_err(|source| ToolError::Component { component, source })
}

/// The path of cargo-deny, installed if it is missing.
pub(crate) fn cargo_deny(root: &Path) -> Result<PathBuf, ToolError> {
    let into = cache()?.join(format!("tools/cargo-deny-{CARGO_DENY}"));
    let program = into.join("bin/cargo-deny");
    if !program.exists() {
        println!(
            "installing cargo-deny {CARGO_DENY} in {}; this takes a minute or two, once",
            into.display()
        );
        // A debug build: a release build takes many minutes longer and saves a second per check.
        let mut cargo = process::cargo(root);
        cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").args(["install", "--quiet", "--locked", "--debug"]);
        cargo.args(["--version", CARGO_DENY, "--root"]).arg(&into).arg("cargo-deny");
        process::run(&mut cargo).map_err(|source| ToolError::Install { into, source })?;
    }
    Ok(program)
}

/// The directory of everything that the commands keep.
pub(crate) fn cache() -> Result<PathBuf, ToolError> {
    let named = |variable| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = named("XDG_CACHE_HOME").or_else(|| named("HOME").map(|home| home.join(".cache")));
    base.map(|base| base.join("ingress-source-preserve")).ok_or(ToolError::NoCache)
}
