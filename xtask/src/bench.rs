//! `cargo xtask bench <name>`: prints figures of this machine next to the project's budgets. People
//! read them; nothing asserts on them. An environment variable per benchmark reduces its size for a
//! quick try.

use std::fmt;

use clap::ValueEnum;

use crate::process::{self, ProcessError};
use crate::workspace::Workspace;

/// The benchmarks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Bench {
    /// Reads and events of 5,000 Services, direct and through the agent (fewer with
    /// `ISP_BENCH_SERVICES`)
    Filter,
    /// Admission reviews of pods, by the webhook and by Istio's injector (shorter with
    /// `ISP_BENCH_SECONDS`)
    Webhook,
}

impl Bench {
    /// The crate that contains the benchmark.
    fn package(self) -> &'static str {
        match self {
            Self::Filter => "isp-proxy-agent",
            Self::Webhook => "isp-webhook",
        }
    }

    /// The program to measure.
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

/// Runs a benchmark, which prints its figures. Builds the program with the profile of the images
/// first, because cargo does not do so for a benchmark.
pub(crate) fn run(workspace: &Workspace, bench: Bench) -> Result<(), ProcessError> {
    println!("bench: {bench}");
    let program = bench.program();
    process::run(process::cargo(&workspace.root).args(["build", "--profile=dist", "--bin", program]))?;
    let mut cargo = process::cargo(&workspace.root);
    cargo.env("ISP_BENCH_PROGRAM", workspace.dist(program));
    process::run(cargo.args(["bench", "--package", bench.package(), "--bench"]).arg(bench.to_string()))
}
