//! The workspace from `cargo metadata`: its root, crates, dependencies and test programs.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;

use crate::process::{self, ProcessError};

/// The parts of `cargo metadata` that the commands use.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    /// The root of the repository.
    #[serde(rename = "workspace_root")]
    pub(crate) root: PathBuf,
    #[serde(rename = "target_directory")]
    target: PathBuf,
    /// The crates of the workspace, without external dependencies.
    pub(crate) packages: Vec<Package>,
}

/// A crate of the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
}

/// A dependency in a crate's Cargo.toml.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    #[serde(deserialize_with = "absent_is_normal")]
    pub(crate) kind: DependencyKind,
}

/// The section of Cargo.toml that names the dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DependencyKind {
    Normal,
    Build,
    Dev,
}

/// A cargo target: a library, program, or test program.
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
    #[error("cannot parse the output of `cargo metadata`")]
    Parse(#[from] serde_json::Error),
}

impl Workspace {
    /// Reads the workspace of the current directory.
    pub(crate) fn read() -> Result<Self, WorkspaceError> {
        let mut cargo = process::cargo(Path::new("."));
        let described = process::capture(cargo.args(["metadata", "--format-version", "1", "--no-deps"]))?;
        Ok(serde_json::from_slice(&described)?)
    }

    /// The directory of build output.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// The path of a program built with the dev profile.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.target.join("debug").join(name)
    }

    /// The path of an example program.
    pub(crate) fn example(&self, name: &str) -> PathBuf {
        self.target.join("debug/examples").join(name)
    }

    /// A temporary directory for this process.
    pub(crate) fn scratch(&self, purpose: &str) -> PathBuf {
        self.target.join("xtask").join(format!("{purpose}-{}", std::process::id()))
    }
}

impl Target {
    /// Whether the target is an integration test, a file in a crate's `tests/`.
    pub(crate) fn is_integration_test(&self) -> bool {
        self.kind.iter().any(|kind| kind == "test")
    }
}

fn absent_is_normal<'de, D: serde::Deserializer<'de>>(kind: D) -> Result<DependencyKind, D::Error> {
    Ok(Option::deserialize(kind)?.unwrap_or(DependencyKind::Normal))
}

#[cfg(test)]
mod tests;
