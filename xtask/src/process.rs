//! Running other programs: one place that starts them, and errors that name the whole command.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use thiserror::Error;

/// A program that could not be run to its good end.
#[derive(Debug, Error)]
pub(crate) enum ProcessError {
    /// Most often the program is not installed.
    #[error("cannot start `{command}`")]
    Start { command: String, source: io::Error },
    /// What it had to say, it has printed itself.
    #[error("`{command}` failed, {status}")]
    Failed { command: String, status: ExitStatus },
    /// Its output broke off or is not text.
    #[error("cannot read what `{command}` prints")]
    Output { command: String, source: io::Error },
}

/// The cargo that runs us, started in `directory`, without the variables that it set for this crate: build scripts
/// that watch such a variable (ring's does) would run again at each change between `cargo xtask` and plain cargo.
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

/// Runs with our own input and output.
pub(crate) fn run(command: &mut Command) -> Result<(), ProcessError> {
    let status = command.status().map_err(|source| start_error(command, source))?;
    success(command, status)
}

/// Whether it runs and succeeds, without a word from it.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    silent.status().is_ok_and(|status| status.success())
}

/// Runs and returns what it prints, whether it succeeds or not. Its error output passes through.
pub(crate) fn answer(command: &mut Command) -> Result<(ExitStatus, Vec<u8>), ProcessError> {
    let output = command.stderr(Stdio::inherit()).output().map_err(|source| start_error(command, source))?;
    Ok((output.status, output.stdout))
}

/// Runs and returns what it prints.
pub(crate) fn capture(command: &mut Command) -> Result<Vec<u8>, ProcessError> {
    let (status, printed) = answer(command)?;
    success(command, status).map(|()| printed)
}

/// Runs, passes its output on, and shows each line to `seen` on the way.
pub(crate) fn watch(
    command: &mut Command,
    to: &mut impl Write,
    mut seen: impl FnMut(&str),
) -> Result<(), ProcessError> {
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|source| start_error(command, source))?;
    if let Some(output) = child.stdout.take() {
        let mut reader = BufReader::new(output);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).map_err(|source| output_error(command, source))? > 0 {
            let text = String::from_utf8_lossy(&line);
            to.write_all(text.as_bytes()).map_err(|source| output_error(command, source))?;
            seen(text.trim_end());
            line.clear();
        }
    }
    let status = child.wait().map_err(|source| output_error(command, source))?;
    success(command, status)
}

/// Becomes that program; returns only when it cannot be started.
pub(crate) fn replace(command: &mut Command) -> ProcessError {
    let source = command.exec();
    start_error(command, source)
}

fn success(command: &Command, status: ExitStatus) -> Result<(), ProcessError> {
    if status.success() { Ok(()) } else { Err(failed(command, status)) }
}

/// The error of a command that ended so.
pub(crate) fn failed(command: &Command, status: ExitStatus) -> ProcessError {
    ProcessError::Failed { command: spelled(command), status }
}

fn start_error(command: &Command, source: io::Error) -> ProcessError {
    ProcessError::Start { command: spelled(command), source }
}

fn output_error(command: &Command, source: io::Error) -> ProcessError {
    ProcessError::Output { command: spelled(command), source }
}

/// The command as one would type it: the program by its file name, then its arguments.
fn spelled(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let words = std::iter::once(program.file_name().unwrap_or(program.as_os_str())).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}
