//! Runs other programs. Errors name the whole command.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use thiserror::Error;

/// Why a program failed.
#[derive(Debug, Error)]
pub(crate) enum ProcessError {
    /// It could not be started. Usually it is not installed.
    #[error("cannot start `{command}`")]
    Start { command: String, source: io::Error },
    /// It failed, and has printed the reason itself.
    #[error("`{command}` failed, {status}")]
    Failed { command: String, status: ExitStatus },
    /// Its output was cut off or is not text.
    #[error("cannot read the output of `{command}`")]
    Output { command: String, source: io::Error },
}

/// The cargo that runs this program, in `directory`, without the variables that it set for this
/// crate. Build scripts that watch such a variable (ring's does) would otherwise rerun whenever
/// `cargo xtask` and plain cargo alternate.
pub(crate) fn cargo(directory: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(directory);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(describes_this_crate) {
            command.env_remove(name);
        }
    }
    command
}

fn describes_this_crate(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| variable.starts_with(prefix))
}

/// Runs a command with this process's standard input and output.
pub(crate) fn run(command: &mut Command) -> Result<(), ProcessError> {
    let status = command.status().map_err(|source| start_error(command, source))?;
    success(command, status)
}

/// Whether a command succeeds. Discards its output.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    silent.status().is_ok_and(|status| status.success())
}

/// Runs a command and returns its output, whatever the exit status. Standard error passes through.
pub(crate) fn answer(command: &mut Command) -> Result<(ExitStatus, Vec<u8>), ProcessError> {
    let output = command.stderr(Stdio::inherit()).output().map_err(|source| start_error(command, source))?;
    Ok((output.status, output.stdout))
}

/// Runs a command and returns its output. Fails if the command does.
pub(crate) fn capture(command: &mut Command) -> Result<Vec<u8>, ProcessError> {
    let (status, printed) = answer(command)?;
    success(command, status).map(|()| printed)
}

/// Runs a command, copies its standard output and error to `to`, and passes each line to `seen`.
/// Both share a pipe, so their lines keep their order.
pub(crate) fn watch(
    command: &mut Command,
    to: &mut impl Write,
    mut seen: impl FnMut(&str),
) -> Result<(), ProcessError> {
    let (output, input) = io::pipe().map_err(|source| output_error(command, source))?;
    let both = input.try_clone().map_err(|source| output_error(command, source))?;
    let child = command.stdout(input).stderr(both).spawn();
    // The output ends when nobody holds the other end of the pipe: not this command, either.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = child.map_err(|source| start_error(command, source))?;
    let mut reader = BufReader::new(output);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).map_err(|source| output_error(command, source))? > 0 {
        let text = String::from_utf8_lossy(&line);
        to.write_all(text.as_bytes()).map_err(|source| output_error(command, source))?;
        seen(text.trim_end());
        line.clear();
    }
    let status = child.wait().map_err(|source| output_error(command, source))?;
    success(command, status)
}

/// Replaces this process with the program. Returns only if it cannot be started.
pub(crate) fn replace(command: &mut Command) -> ProcessError {
    let source = command.exec();
    start_error(command, source)
}

fn success(command: &Command, status: ExitStatus) -> Result<(), ProcessError> {
    if status.success() { Ok(()) } else { Err(failed(command, status)) }
}

/// The error for a command with this exit status.
pub(crate) fn failed(command: &Command, status: ExitStatus) -> ProcessError {
    ProcessError::Failed { command: spelled(command), status }
}

fn start_error(command: &Command, source: io::Error) -> ProcessError {
    ProcessError::Start { command: spelled(command), source }
}

fn output_error(command: &Command, source: io::Error) -> ProcessError {
    ProcessError::Output { command: spelled(command), source }
}

/// The command line as typed: the program's file name, then its arguments.
fn spelled(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let words = std::iter::once(program.file_name().unwrap_or(program.as_os_str())).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}
