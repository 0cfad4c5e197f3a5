//! `cargo xtask bench <name>`: prints figures of this machine next to the project's budgets. People
//! read them; nothing asserts on them. `--quick`, or an environment variable, makes one smaller for
//! a quick try.

use std::fmt;

use clap::ValueEnum;

use crate::dist::Platform;
use crate::image::{self, Program};
use crate::lab;
use crate::process::{self, ProcessError};
use crate::workspace::Workspace;

/// The benchmarks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Bench {
    /// Reads and events of 5,000 Services, direct and through the agent (fewer with
    /// `ISP_BENCH_SERVICES`)
    Filter,
    /// Services of a cluster with 10 to 50,000, by the agent of mode Beside and by kube-proxy
    /// (fewer with `ISP_BENCH_SERVICES`); needs root and about an hour
    Dataplane,
    /// Failed requests while 20 pods restart 20 times, with kube-proxy and with mode Beside (fewer
    /// restarts with `ISP_BENCH_RESTARTS`)
    RollingRestart,
    /// Admission reviews of pods, by the webhook and by Istio's injector (shorter with
    /// `ISP_BENCH_SECONDS`)
    Webhook,
    /// The first run of a pod's init container, ours and Istio's (fewer with `ISP_BENCH_RUNS`);
    /// needs root
    PodRedirect,
}

impl Bench {
    /// The crate that contains the benchmark.
    fn package(self) -> &'static str {
        match self {
            Self::Filter | Self::Dataplane | Self::RollingRestart => "isp-proxy-agent",
            Self::Webhook => "isp-webhook",
            Self::PodRedirect => "isp-pod-redirect",
        }
    }

    /// The variable and the value that make it small enough to try it in a minute or two.
    fn quick(self) -> (&'static str, &'static str) {
        match self {
            Self::Filter => ("ISP_BENCH_SERVICES", "300"),
            Self::Dataplane => ("ISP_BENCH_SERVICES", "200"),
            Self::RollingRestart => ("ISP_BENCH_RESTARTS", "2"),
            Self::Webhook => ("ISP_BENCH_SECONDS", "9"),
            Self::PodRedirect => ("ISP_BENCH_RUNS", "10"),
        }
    }

    /// The program to measure.
    fn program(self) -> Program {
        match self {
            Self::Filter | Self::Dataplane | Self::RollingRestart => Program::ProxyAgent,
            Self::Webhook => Program::Webhook,
            Self::PodRedirect => Program::PodRedirect,
        }
    }

    /// Whether it runs a lab, whose programs are beside the benchmark.
    fn runs_lab(self) -> bool {
        self == Self::RollingRestart
    }

    /// Whether the benchmark only starts what it measures, so that it need not be optimized itself.
    fn only_starts(self) -> bool {
        matches!(self, Self::RollingRestart | Self::PodRedirect)
    }
}

impl fmt::Display for Bench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Filter => "filter",
            Self::Dataplane => "dataplane",
            Self::RollingRestart => "rolling-restart",
            Self::Webhook => "webhook",
            Self::PodRedirect => "pod-redirect",
        })
    }
}

/// Runs a benchmark, which prints its figures. Builds the program as for its image first, because
/// cargo does not do so for a benchmark.
pub(crate) fn run(workspace: &Workspace, bench: Bench, quick: bool) -> Result<(), ProcessError> {
    println!("bench: {bench}");
    let built = image::build(workspace, &[Platform::host()], &[bench.program()])?;
    let mut cargo = process::cargo(&workspace.root);
    cargo.envs(built.iter().map(|built| ("ISP_BENCH_PROGRAM", &built.path)));
    if quick {
        let (variable, value) = bench.quick();
        cargo.env(variable, value);
    }
    cargo.args(["bench", "--package", bench.package(), "--bench"]).arg(bench.to_string());
    if bench.runs_lab() {
        lab::build(workspace)?;
    }
    if bench.only_starts() {
        cargo.args(["--profile", "dev"]);
    }
    process::run(&mut cargo)
}
