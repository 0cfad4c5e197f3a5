//! `cargo xtask lint`: all static checks. Every step runs, even after a failure.

use std::io::{self, IsTerminal};
use std::process::Command;
use std::time::Instant;

use thiserror::Error;

use crate::cli::chain;
use crate::directions::{self, WrongDirections, table::TableError};
use crate::docs::{self, DocsError};
use crate::generated::{self, GeneratedError};
use crate::process::{self, ProcessError};
use crate::reference::{self, ReferenceError};
use crate::tools::{self, ToolError};
use crate::workspace::Workspace;

/// The names of the failed steps.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) failed: Vec<&'static str>,
}

impl Report {
    pub(crate) fn is_clean(&self) -> bool {
        self.failed.is_empty()
    }
}

/// Why a step failed.
#[derive(Debug, Error)]
enum StepError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Tool(#[from] ToolError),
    #[error(transparent)]
    Directions(#[from] WrongDirections),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Generated(#[from] GeneratedError),
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    #[error(transparent)]
    Docs(#[from] DocsError),
}

type Step = fn(&Workspace) -> Result<(), StepError>;

/// The steps, fast ones first.
const STEPS: &[(&str, Step)] = &[
    ("rustfmt", rustfmt),
    ("crate directions", |workspace| Ok(directions::check(&workspace.packages)?)),
    ("crate table", |workspace| Ok(directions::table::check(workspace)?)),
    ("cargo-deny", |workspace| deny(workspace, &["licenses", "bans", "sources"])),
    ("clippy", clippy),
    ("links in doc comments", rustdoc),
    ("generated files", |workspace| Ok(generated::check(workspace)?)),
    ("API reference", |workspace| Ok(reference::check(workspace)?)),
    ("docs", |workspace| Ok(docs::check(workspace)?)),
];

const ADVISORIES: (&str, Step) = ("advisories", |workspace| deny(workspace, &["advisories"]));

/// Runs every step and reports its result.
pub(crate) fn run(workspace: &Workspace, advisories: bool) -> Report {
    let mut report = Report::default();
    for (name, step) in STEPS.iter().chain(advisories.then_some(&ADVISORIES)) {
        println!("lint: {name}");
        let start = Instant::now();
        let result = step(workspace);
        let seconds = start.elapsed().as_secs_f64();
        match result {
            Ok(()) => println!("lint: {name} ok, {seconds:.1} s"),
            Err(error) => {
                println!("lint: {name} FAILED, {seconds:.1} s: {}", chain(&error));
                report.failed.push(name);
            }
        }
    }
    match report.failed.as_slice() {
        [] => println!("lint: all ok"),
        failed => println!("lint: failed: {}", failed.join(", ")),
    }
    report
}

fn rustfmt(workspace: &Workspace) -> Result<(), StepError> {
    tools::component(&workspace.root, "fmt", "rustfmt")?;
    // rustfmt colours its diff even when the output is a file.
    let colour = if io::stdout().is_terminal() { "auto" } else { "never" };
    let mut cargo = process::cargo(&workspace.root);
    Ok(process::run(cargo.args(["fmt", "--all", "--check", "--", "--color", colour]))?)
}

fn clippy(workspace: &Workspace) -> Result<(), StepError> {
    tools::component(&workspace.root, "clippy", "clippy")?;
    let mut cargo = process::cargo(&workspace.root);
    cargo.args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    Ok(process::run(&mut cargo)?)
}

/// Renders the doc comments. Cargo.toml makes a link to an item that does not exist an error.
fn rustdoc(workspace: &Workspace) -> Result<(), StepError> {
    let mut cargo = process::cargo(&workspace.root);
    cargo.args(["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"]);
    Ok(process::run(&mut cargo)?)
}

/// Runs cargo-deny. An exception in deny.toml that is no longer needed is an error, so that the
/// list stays short.
fn deny(workspace: &Workspace, checks: &[&str]) -> Result<(), StepError> {
    let mut command = Command::new(tools::cargo_deny(&workspace.root)?);
    command.current_dir(&workspace.root).arg("check");
    command.args(["-D", "unmatched-skip", "-D", "unnecessary-skip"]).args(checks);
    Ok(process::run(&mut command)?)
}
