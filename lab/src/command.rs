//! Runs other programs: with an argument list, never through a shell. An error has the command, its
//! exit status and the last lines of its output.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::{Command, ExitStatus, Stdio};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The result of a finished program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Whether its exit code is 0.
    pub success: bool,
    /// The exit code; none if a signal killed it.
    pub code: Option<i32>,
}

impl From<std::process::Output> for Output {
    fn from(output: std::process::Output) -> Self {
        Self {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            success: output.status.success(),
            code: output.status.code(),
        }
    }
}

/// Why a command failed.
#[derive(Debug, Error)]
pub enum CommandError {
    /// It could not be started.
    #[error("cannot run {command}: {source}")]
    Start {
        /// Program and arguments.
        command: String,
        /// The I/O error.
        source: io::Error,
    },
    /// Its exit code is not 0.
    #[error("{command} ended with {status}: {last}")]
    Failed {
        /// Program and arguments.
        command: String,
        /// The exit status.
        status: String,
        /// The last lines of its output.
        last: String,
    },
}

/// The command line as text.
pub(crate) fn describe(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        let _ = write!(line, " {}", argument.to_string_lossy());
    }
    line
}

/// Runs the command and fails unless its exit code is 0.
pub(crate) fn run(command: &mut Command) -> Result<Output, CommandError> {
    run_with_input(command, "")
}

/// Like [`run`], with `input` on standard input.
pub(crate) fn run_with_input(command: &mut Command, input: &str) -> Result<Output, CommandError> {
    let output = output(command, input)?;
    check(&describe(command), output)
}

/// Runs the command and returns its output, whatever the exit code.
pub(crate) fn output(command: &mut Command, input: &str) -> Result<Output, CommandError> {
    let finished = spawn_piped(command).and_then(|mut child| {
        let stdin = child.stdin.take();
        std::thread::scope(|scope| {
            // Writes while reading, to avoid a deadlock on full pipes. Write errors are ignored: if
            // the program stops reading early, its exit code explains it.
            scope.spawn(|| stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
            child.wait_with_output()
        })
    });
    finished.map(Output::from).map_err(|source| CommandError::Start { command: describe(command), source })
}

fn spawn_piped(command: &mut Command) -> io::Result<std::process::Child> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

/// Turns a failed exit status into an error.
pub(crate) fn check(command: &str, output: Output) -> Result<Output, CommandError> {
    if output.success {
        return Ok(output);
    }
    let status = output.code.map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"));
    let printed = if output.stderr.trim().is_empty() { &output.stdout } else { &output.stderr };
    Err(CommandError::Failed { command: command.to_owned(), status, last: last_lines(printed, 12) })
}

/// The same for a child whose output was not captured.
pub(crate) fn check_status(command: &str, status: ExitStatus, last: &str) -> Result<(), CommandError> {
    if status.success() {
        return Ok(());
    }
    Err(CommandError::Failed {
        command: command.to_owned(),
        status: status.to_string(),
        last: last_lines(last, 30),
    })
}

/// The last `count` lines.
pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}
