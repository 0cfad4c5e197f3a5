//! `cargo xtask image`: packs the programs as images in one OCI archive, for `kind load
//! image-archive`, `ctr images import`, or a push with `skopeo`. `isp-lab` packs them. The
//! Containerfile builds the same images in containers.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::dist::{self, Linking, Platform};
use crate::lab;
use crate::process::{self, ProcessError};
use crate::release::Registry;
use crate::workspace::Workspace;

/// A program that has an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Program {
    /// The operator
    Operator,
    /// The webhook
    Webhook,
    /// The agent for non-ingress nodes
    ProxyAgent,
    /// The init container of pods with a proxy of their own
    PodRedirect,
    /// The pods of `kubectl isp probe`
    Probe,
}

impl Program {
    /// All programs.
    pub(crate) fn all() -> &'static [Self] {
        Self::value_variants()
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Operator => "operator",
            Self::Webhook => "webhook",
            Self::ProxyAgent => "proxy-agent",
            Self::PodRedirect => "pod-redirect",
            Self::Probe => "probe",
        })
    }
}

/// Builds the given programs for this machine, or all, and packs them.
pub(crate) fn run(
    workspace: &Workspace,
    registry: &Registry,
    archive: &Path,
    asked: &[Program],
) -> Result<(), ProcessError> {
    let programs = if asked.is_empty() { Program::all() } else { asked };
    let built = build(workspace, &[Platform::host()], programs)?;
    pack(workspace, registry, &built, archive)
}

/// A program that was built for a platform.
#[derive(Debug, Clone)]
pub(crate) struct Built {
    pub(crate) platform: Platform,
    pub(crate) path: PathBuf,
}

/// Builds programs for each platform. They are static, so an image needs nothing else.
pub(crate) fn build(
    workspace: &Workspace,
    platforms: &[Platform],
    programs: &[Program],
) -> Result<Vec<Built>, ProcessError> {
    let names: Vec<String> = programs.iter().map(ToString::to_string).collect();
    let mut built = Vec::new();
    for platform in platforms {
        let paths = dist::build(workspace, *platform, Linking::Static, &names)?;
        built.extend(paths.into_iter().map(|path| Built { platform: *platform, path }));
    }
    Ok(built)
}

/// Packs built programs as images in one archive.
pub(crate) fn pack(
    workspace: &Workspace,
    registry: &Registry,
    programs: &[Built],
    archive: &Path,
) -> Result<(), ProcessError> {
    lab::build_alone(workspace)?;
    let mut paths: Vec<&Path> = programs.iter().map(|built| built.path.as_path()).collect();
    // The platforms of a program follow each other, which makes them one image.
    paths.sort_by_key(|path| path.file_name());
    let mut pack = lab::command(workspace);
    pack.arg("pack").args(paths).args(["--registry", registry.as_str(), "--out"]).arg(archive);
    process::run(&mut pack)
}
