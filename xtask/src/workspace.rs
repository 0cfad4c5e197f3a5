//! The workspace as cargo describes it: where it is, its crates, what they depend on, their test programs.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;

use crate::process::{self, ProcessError};

/// What of `cargo metadata` the commands use.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    /// The repository.
    #[serde(rename = "workspace_root")]
    pub(crate) root: PathBuf,
    #[serde(rename = "target_directory")]
    target: PathBuf,
    /// The crates of the workspace, without those they use.
    pub(crate) packages: Vec<Package>,
}

/// A crate of the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
}

/// A crate that another names in its Cargo.toml.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    #[serde(deserialize_with = "absent_is_normal")]
    pub(crate) kind: DependencyKind,
}

/// Which part of a crate the dependency is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DependencyKind {
    Normal,
    Build,
    Dev,
}

/// Something that cargo builds: a library, a program, a test program.
#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    kind: Vec<String>,
}

/// The workspace could not be read.
#[derive(Debug, Error)]
pub(crate) enum WorkspaceError {
    #[error(transparent)]
    Cargo(#[from] ProcessError),
    #[error("cannot understand what `cargo metadata` prints")]
    Parse(#[from] serde_json::Error),
}

impl Workspace {
    /// The workspace that the current directory belongs to.
    pub(crate) fn read() -> Result<Self, WorkspaceError> {
        let mut cargo = process::cargo(Path::new("."));
        let described = process::capture(cargo.args(["metadata", "--format-version", "1", "--no-deps"]))?;
        Ok(serde_json::from_slice(&described)?)
    }

    /// Where cargo puts a program of the workspace.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.target.join("debug").join(name)
    }

    /// Where cargo puts a program that it builds as images have it, with profile `dist`.
    pub(crate) fn dist(&self, name: &str) -> PathBuf {
        self.target.join("dist").join(name)
    }

    /// Where cargo puts an example of the workspace.
    pub(crate) fn example(&self, name: &str) -> PathBuf {
        self.target.join("debug/examples").join(name)
    }

    /// A place for files that nobody keeps, of this process alone.
    pub(crate) fn scratch(&self, purpose: &str) -> PathBuf {
        self.target.join("xtask").join(format!("{purpose}-{}", std::process::id()))
    }
}

impl Target {
    /// Whether it is an integration test, a file of a crate's `tests/`.
    pub(crate) fn is_integration_test(&self) -> bool {
        self.kind.iter().any(|kind| kind == "test")
    }
}

fn absent_is_normal<'de, D: serde::Deserializer<'de>>(kind: D) -> Result<DependencyKind, D::Error> {
    Ok(Option::deserialize(kind)?.unwrap_or(DependencyKind::Normal))
}

#[cfg(test)]
mod tests;
