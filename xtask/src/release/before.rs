//! The release before this one. `cargo xtask soak release` upgrades from it, and downgrades to it.
//!
//! It is a commit of the history, so every complete clone has it. Its own `cargo xtask release`
//! makes the files, once; the user's cache directory keeps them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use thiserror::Error;

use crate::process::{self, ProcessError};
use crate::tools::{self, ToolError};
use crate::workspace::Workspace;

/// No version has been published. This is the first commit that can make a release. It has another
/// operator and other agents than its successors, and the same version.
const COMMIT: &str = "36483dae1781a4d8e8d4bcc2b8134a6728da9b8c";
/// The registry of its images. A cluster has the images of both releases, and their versions may be
/// equal.
const REGISTRY: &str = "localhost/isp-before";

/// Why there are no files of that release.
#[derive(Debug, Error)]
pub(crate) enum BeforeError {
    #[error(
        "this clone does not have the commit {COMMIT} of the release before; fetch it with `git fetch --unshallow`"
    )]
    NoCommit,
    #[error(transparent)]
    NoCache(#[from] ToolError),
    #[error("cannot make the release before, of commit {COMMIT}")]
    Process(#[from] ProcessError),
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// The directory with the files of the release, made if it is missing.
pub(crate) fn files(workspace: &Workspace) -> Result<PathBuf, BeforeError> {
    let kept = tools::cache()?.join("releases");
    let files = kept.join(COMMIT);
    if !files.is_dir() {
        println!("making the release of {COMMIT}; this takes half an hour, once");
        let making = kept.join(format!("{COMMIT}.making"));
        make(&workspace.root, &making)?;
        // Only a complete release gets the final name.
        let write = |path: &Path, result: io::Result<()>| {
            result.map_err(|source| BeforeError::Write { path: path.to_owned(), source })
        };
        write(&files, fs::rename(making.join("dist"), &files))?;
        write(&making, fs::remove_dir_all(&making))?;
    }
    Ok(files)
}

/// Makes the release in a directory, from a clone of its own. Keeps what an interrupted run built.
fn make(root: &Path, making: &Path) -> Result<(), BeforeError> {
    let git = |directory: &Path| {
        let mut git = Command::new("git");
        git.arg("-C").arg(directory);
        git
    };
    if !process::succeeds(git(root).args(["cat-file", "-e", &format!("{COMMIT}^{{commit}}")])) {
        return Err(BeforeError::NoCommit);
    }
    let source = making.join("source");
    if !source.is_dir() {
        // Without copying the history.
        process::run(git(root).args(["clone", "--quiet", "--shared", "--no-checkout", "."]).arg(&source))?;
    }
    process::run(git(&source).args(["checkout", "--quiet", "--force", "--detach", COMMIT]))?;
    let mut cargo = process::cargo(&source);
    // The tree's own, so that programs of two versions do not replace each other.
    cargo.env("CARGO_TARGET_DIR", making.join("target"));
    cargo.args(["xtask", "release", "--registry", REGISTRY, "--out"]).arg(making.join("dist"));
    Ok(process::run(&mut cargo)?)
}
