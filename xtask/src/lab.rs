//! Builds and runs the lab's programs.

use std::ffi::OsString;
use std::process::Command;

use crate::process::{self, ProcessError};
use crate::workspace::Workspace;

const LAB: &str = "isp-lab";
const ECHO: &str = "echo";
/// Programs that the tests of other crates run on the lab's nodes.
const PROGRAMS: [&str; 4] = ["proxy-agent", "operator", "webhook", "probe"];
const DEMO: &str = "isp-demo";

/// Builds `isp-lab` and the programs that its scenarios run. Selects the whole workspace, so that
/// cargo resolves the same features as for the tests and builds each dependency once.
pub(crate) fn build(workspace: &Workspace) -> Result<(), ProcessError> {
    build_with(workspace, &[])
}

fn build_with(workspace: &Workspace, more: &[&str]) -> Result<(), ProcessError> {
    let programs = [LAB, ECHO].into_iter().chain(PROGRAMS).chain(more.iter().copied());
    build_programs(workspace, &programs.collect::<Vec<_>>())
}

/// Builds quietly, except the first time: that takes minutes, and cargo shows the progress.
fn build_programs(workspace: &Workspace, programs: &[&str]) -> Result<(), ProcessError> {
    let mut cargo = process::cargo(&workspace.root);
    cargo.args(["build", "--workspace"]).args(programs.iter().flat_map(|program| ["--bin", program]));
    if programs.iter().all(|program| workspace.program(program).exists()) {
        cargo.arg("--quiet");
    }
    process::run(&mut cargo)
}

/// Builds `isp-lab` only, for commands that do not start a lab.
pub(crate) fn build_alone(workspace: &Workspace) -> Result<(), ProcessError> {
    build_programs(workspace, &[LAB])
}

/// A command of `isp-lab`, in the current directory.
pub(crate) fn command(workspace: &Workspace) -> Command {
    Command::new(workspace.program(LAB))
}

/// Builds the lab and replaces this process with it. Returns only on error.
pub(crate) fn become_lab(workspace: &Workspace, arguments: &[OsString]) -> ProcessError {
    match build(workspace) {
        Ok(()) => process::replace(command(workspace).args(arguments)),
        Err(error) => error,
    }
}

/// Builds the demo and replaces this process with it, so that it handles Ctrl-C. Returns only on
/// error.
pub(crate) fn become_demo(workspace: &Workspace, arguments: &[OsString]) -> ProcessError {
    match build_with(workspace, &[DEMO]) {
        Ok(()) => process::replace(Command::new(workspace.program(DEMO)).args(arguments)),
        Err(error) => error,
    }
}
