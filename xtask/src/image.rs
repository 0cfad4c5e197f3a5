//! `cargo xtask image`: the programs as images, for `ctr images import`, `docker load` or a push with `skopeo` or `crane`. The lab knows
//! how to pack a program with the libraries that it links to; the Containerfile builds the same images in containers.

use std::fmt;
use std::path::Path;

use clap::ValueEnum;

use crate::lab;
use crate::process::{self, ProcessError};
use crate::workspace::Workspace;

/// A program that is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Program {
    /// One for the cluster
    Operator,
    /// One for the cluster
    Webhook,
    /// One for each non-ingress node
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

/// Builds the programs that are asked for, or all, and has the lab pack them.
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
