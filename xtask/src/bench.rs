//! `cargo xtask bench <name>`: figures of this machine, beside what the project promises. They are read by people and asserted
//! nowhere. A bench takes its size from a variable of its own, so that a small one can be tried in a minute.

use std::fmt;

use clap::ValueEnum;

use crate::process::{self, ProcessError};
use crate::workspace::Workspace;

/// The benches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Bench {
    /// Reads and events of 5,000 Services, direct and through the agent (smaller with `ISP_BENCH_SERVICES`)
    Filter,
    /// Reviews of pods, by the webhook and by Istio's injector (shorter with `ISP_BENCH_SECONDS`)
    Webhook,
}

impl Bench {
    /// The crate that has it, which gives it its name there.
    fn package(self) -> &'static str {
        match self {
            Self::Filter => "isp-proxy-agent",
            Self::Webhook => "isp-webhook",
        }
    }

    /// The program that it measures.
    fn program(self) -> &'static str {
        match self {
            Self::Filter => "proxy-agent",
            Self::Webhook => "webhook",
        }
    }
}

impl fmt::Display for Bench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Filter => "filter",
            Self::Webhook => "webhook",
        })
    }
}

/// Runs a bench to its end; what it prints are its figures. The program is the one that images have, which
/// cargo does not build for a bench by itself.
pub(crate) fn run(workspace: &Workspace, bench: Bench) -> Result<(), ProcessError> {
    println!("bench: {bench}");
    let program = bench.program();
    process::run(process::cargo(&workspace.root).args(["build", "--profile=dist", "--bin", program]))?;
    let mut cargo = process::cargo(&workspace.root);
    cargo.env("ISP_BENCH_PROGRAM", workspace.dist(program));
    process::run(cargo.args(["bench", "--package", bench.package(), "--bench"]).arg(bench.to_string()))
}
