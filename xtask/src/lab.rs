//! The lab's programs: built here, run by whoever needs them.

use std::ffi::OsString;
use std::process::Command;

use crate::process::{self, ProcessError};
use crate::workspace::Workspace;

const LAB: &str = "isp-lab";
const ECHO: &str = "echo";
/// What the lab's nodes run in tests of other crates than their own.
const PROGRAMS: [&str; 3] = ["proxy-agent", "operator", "webhook"];
const DEMO: &str = "isp-demo";

/// Builds `isp-lab` and the programs that its scenarios run. All crates of the workspace are named so that
/// cargo picks the features that it picks for the tests, and builds each dependency once.
pub(crate) fn build(workspace: &Workspace) -> Result<(), ProcessError> {
    build_with(workspace, &[])
}

fn build_with(workspace: &Workspace, more: &[&str]) -> Result<(), ProcessError> {
    let programs = [LAB, ECHO].into_iter().chain(PROGRAMS).chain(more.iter().copied());
    build_programs(workspace, &programs.collect::<Vec<_>>())
}

/// Without a word, except for the first time: that takes minutes, and cargo shows how far it is.
fn build_programs(workspace: &Workspace, programs: &[&str]) -> Result<(), ProcessError> {
    let mut cargo = process::cargo(&workspace.root);
    cargo.args(["build", "--workspace"]).args(programs.iter().flat_map(|program| ["--bin", program]));
    if programs.iter().all(|program| workspace.program(program).exists()) {
        cargo.arg("--quiet");
    }
    process::run(&mut cargo)
}

/// Builds `isp-lab` alone, for those of its commands that start nothing.
pub(crate) fn build_alone(workspace: &Workspace) -> Result<(), ProcessError> {
    build_programs(workspace, &[LAB])
}

/// A command of `isp-lab`, in the directory that the user is in.
pub(crate) fn command(workspace: &Workspace) -> Command {
    Command::new(workspace.program(LAB))
}

/// Builds the lab and becomes it; returns only when that cannot be done.
pub(crate) fn become_lab(workspace: &Workspace, arguments: &[OsString]) -> ProcessError {
    match build(workspace) {
        Ok(()) => process::replace(command(workspace).args(arguments)),
        Err(error) => error,
    }
}

/// Builds the demo and becomes it, so that Ctrl-C is its own; returns only when that cannot be done.
pub(crate) fn become_demo(workspace: &Workspace, arguments: &[OsString]) -> ProcessError {
    match build_with(workspace, &[DEMO]) {
        Ok(()) => process::replace(Command::new(workspace.program(DEMO)).args(arguments)),
        Err(error) => error,
    }
}
