//! One of the project's programs as a process of a test, usually against an
//! [`isp_lab::ControlPlane`]. It logs to a file and is queried at its admin address.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The timeout for the admin server, on a busy machine.
const ANSWER: Duration = Duration::from_secs(30);

/// A running program. Dropping it kills the process, and prints its log if the test has failed.
pub struct Program {
    name: String,
    process: Child,
    admin: SocketAddr,
    log: PathBuf,
    _directory: tempfile::TempDir,
}

impl Program {
    /// Starts a command that serves its metrics at `admin`. `name` is used in messages.
    pub fn start(name: &str, mut command: Command, admin: SocketAddr) -> io::Result<Self> {
        let directory = tempfile::tempdir()?;
        let log = directory.path().join("log");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log)?);
        Ok(Self { name: name.to_owned(), process: command.spawn()?, admin, log, _directory: directory })
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Whether the process is running.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// The log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// GETs a path from the admin address. `None` if there is no successful answer.
    fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.admin).ok()?;
        stream.set_read_timeout(Some(ANSWER)).ok()?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.name).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.starts_with("HTTP/1.1 200").then(|| body.to_owned())
    }

    /// Whether `/healthz` succeeds.
    pub fn is_healthy(&self) -> bool {
        self.get("/healthz").is_some()
    }

    /// Whether `/readyz` succeeds.
    pub fn is_ready(&self) -> bool {
        self.get("/readyz").is_some()
    }

    /// The metrics, one per line; empty if it does not answer.
    pub fn metrics(&self) -> Vec<String> {
        let text = self.get("/metrics").unwrap_or_default();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    /// The value of a metric, given by its name with labels.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics().iter().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    }

    /// Sends a signal to the process.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let id = self.process.id().try_into().map_err(io::Error::other)?;
        Ok(kill(Pid::from_raw(id), signal)?)
    }

    /// Sends SIGTERM, waits for the exit, and returns whether the exit code was 0.
    pub fn end(&mut self) -> io::Result<bool> {
        self.signal(Signal::SIGTERM)?;
        Ok(self.process.wait()?.success())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if thread::panicking() {
            eprintln!("the log of the {}:\n{}", self.name, self.log());
        }
    }
}
