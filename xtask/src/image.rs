//! `cargo xtask image`: packs the programs as images, for `ctr images import`, `docker load`, or a
//! push with `skopeo` or `crane`. The lab packs a program with the libraries that it links to. The
//! Containerfile builds the same images in containers.

use std::fmt;
use std::path::Path;

use clap::ValueEnum;

use crate::lab;
use crate::process::{self, ProcessError};
use crate::workspace::Workspace;

/// An installed program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Program {
    /// The operator
    Operator,
    /// The webhook
    Webhook,
    /// The agent for non-ingress nodes
    ProxyAgent,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Operator => "operator",
            Self::Webhook => "webhook",
            Self::ProxyAgent => "proxy-agent",
        })
    }
}

/// Builds the given programs, or all, and runs the lab to pack them.
pub(crate) fn run(workspace: &Workspace, out: &Path, asked: &[Program]) -> Result<(), ProcessError> {
    let programs = if asked.is_empty() { Program::value_variants() } else { asked };
    let mut cargo = process::cargo(&workspace.root);
    cargo.args(["build", "--profile=dist", "--locked"]);
    for program in programs {
        cargo.arg("--bin").arg(program.to_string());
    }
    process::run(&mut cargo)?;
    lab::build_alone(workspace)?;
    for program in programs {
        let mut pack = lab::command(workspace);
        pack.arg("pack").arg(workspace.dist(&program.to_string())).arg("--out").arg(out);
        process::run(&mut pack)?;
    }
    Ok(())
}
