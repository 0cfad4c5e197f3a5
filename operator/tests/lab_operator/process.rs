//! Processes that tests start and stop.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A process with its output in files. It is killed when the handle is dropped.
pub(crate) struct Process {
    child: Child,
    /// The file of its stdout; the stderr file is next to it.
    output: PathBuf,
    /// Whether the child is a wrapper that entered a place of the lab and waits for the actual
    /// program.
    in_place: bool,
}

impl Process {
    /// Starts a command of `Lab::command_in`.
    pub(crate) fn start_in_place(command: Command, output: &Path) -> Self {
        let mut process = Self::start(command, output);
        process.in_place = true;
        process
    }

    pub(crate) fn start(mut command: Command, output: &Path) -> Self {
        command.stdin(Stdio::null()).stdout(File::create(output).unwrap());
        command.stderr(File::create(errors(output)).unwrap());
        Self { child: command.spawn().unwrap(), output: output.to_owned(), in_place: false }
    }

    pub(crate) fn printed(&self) -> String {
        fs::read_to_string(&self.output).unwrap()
    }

    pub(crate) fn complained(&self) -> String {
        fs::read_to_string(errors(&self.output)).unwrap()
    }

    /// The PID of the program itself.
    pub(crate) fn pid(&self) -> Option<Pid> {
        let id = self.child.id();
        if !self.in_place {
            return Some(Pid::from_raw(id.try_into().unwrap()));
        }
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok().map(Pid::from_raw)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid() {
            // It may have just exited.
            let _ = kill(pid, signal);
        }
    }

    /// The exit status, if it has exited.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits for its exit, which must come soon.
    pub(crate) async fn end(&mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            assert!(started.elapsed() < Duration::from_mins(1), "{} does not end", self.output.display());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn errors(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".errors");
    name.into()
}
