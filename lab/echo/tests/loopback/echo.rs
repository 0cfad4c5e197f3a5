//! Starts the program, and kills it even if the test fails.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

pub(crate) fn echo() -> Command {
    Command::new(env!("CARGO_BIN_EXE_echo"))
}

/// The result of a run of `echo ask`.
pub(crate) struct Asked {
    pub(crate) lines: Vec<Value>,
    pub(crate) summary: Value,
    pub(crate) success: bool,
}

pub(crate) fn ask(arguments: &[&str]) -> Asked {
    let output = echo().arg("ask").args(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    Asked {
        lines: text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
        summary: serde_json::from_str(&errors).unwrap_or_else(|error| panic!("{error}: {errors}")),
        success: output.status.success(),
    }
}

/// A child process that does not outlive its test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id().try_into().unwrap()), signal).unwrap();
    }

    /// Waits until the process handles the signal. Before that, the signal would kill it.
    pub(crate) fn wait_for_handler(&self, signal: Signal) {
        let status = format!("/proc/{}/status", self.0.id());
        let bit = 1_u64 << (signal as u32 - 1);
        wait_for("no handler", || {
            let status = fs::read_to_string(&status).unwrap();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim();
            (u64::from_str_radix(caught, 16).unwrap() & bit != 0).then_some(())
        });
    }

    /// Waits for the process to exit, which must happen soon.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        wait_for("still running", || self.0.try_wait().unwrap())
    }
}

fn wait_for<T>(otherwise: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(Instant::now() < deadline, "{otherwise}");
        sleep(Duration::from_millis(5));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// `echo serve` on ports that the kernel chooses, on every address of both families.
pub(crate) struct Server {
    pub(crate) process: Running,
    pub(crate) http: u16,
    pub(crate) tcp: u16,
    pub(crate) udp: u16,
    _stdout: BufReader<ChildStdout>,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_on("::")
    }

    pub(crate) fn start_on(address: &str) -> Self {
        let mut child = echo()
            .args(["serve", "--http", "0", "--tcp", "0", "--udp", "0", "--address", address])
            .envs([("POD_NAME", "echo-1"), ("POD_NAMESPACE", "demo"), ("NODE_NAME", "work-1")])
            .env("POD_IP", "10.244.1.2")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let process = Running(child);
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        let port = |protocol: &str| {
            line["listening"][protocol].as_str().unwrap().parse::<SocketAddr>().unwrap().port()
        };
        Self { http: port("http"), tcp: port("tcp"), udp: port("udp"), process, _stdout: stdout }
    }
}
