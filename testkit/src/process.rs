//! Processes that tests start and stop, with their output in files.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::wait::Patience;

/// A program that is told to end gets this long.
const ENDS: Patience = Patience { limit: Duration::from_mins(1), pause: Duration::from_millis(10) };

/// A process with its output in files. It is killed when the handle is dropped.
pub struct Process {
    child: Child,
    /// The file of its stdout; the stderr file is next to it.
    output: PathBuf,
    /// Whether the child is a wrapper that entered a place of the lab and waits for the actual
    /// program.
    in_place: bool,
}

impl Process {
    /// Starts a command of [`isp_lab::Lab::command_in`].
    pub fn start_in_place(command: Command, output: &Path) -> Self {
        let mut process = Self::start(command, output);
        process.in_place = true;
        process
    }

    /// Starts a command. Its stdout goes to `output`, its stderr to a file next to it.
    pub fn start(mut command: Command, output: &Path) -> Self {
        command.stdin(Stdio::null()).stdout(File::create(output).unwrap());
        command.stderr(File::create(errors(output)).unwrap());
        Self { child: command.spawn().unwrap(), output: output.to_owned(), in_place: false }
    }

    /// Its stdout so far.
    pub fn printed(&self) -> String {
        fs::read_to_string(&self.output).unwrap()
    }

    /// Its stderr so far.
    pub fn complained(&self) -> String {
        fs::read_to_string(errors(&self.output)).unwrap()
    }

    /// The PID of the program itself.
    pub fn pid(&self) -> Option<Pid> {
        let id = self.child.id();
        if !self.in_place {
            return Some(Pid::from_raw(id.try_into().unwrap()));
        }
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok().map(Pid::from_raw)
    }

    /// Sends a signal to the program itself, if it is still there.
    pub fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid() {
            // It may have just exited.
            let _ = kill(pid, signal);
        }
    }

    /// Kills the program and waits until it has exited.
    pub fn kill(&mut self) {
        // A wrapper exits after its program; it is killed only if it has none.
        if self.pid().is_none_or(|pid| kill(pid, Signal::SIGKILL).is_err()) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }

    /// The exit status, if it has exited.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits for its exit, which must come soon.
    pub async fn end(&mut self) -> ExitStatus {
        let what = format!("{} ends", self.output.display());
        ENDS.until(&what, async || self.ended()).await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn errors(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".errors");
    name.into()
}

#[cfg(test)]
mod tests;
