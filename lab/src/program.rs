//! One of the project's programs as a process, as tests run it against a [`ControlPlane`](crate::ControlPlane): it
//! logs to a file and is asked at its admin address.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const OFTEN: Duration = Duration::from_millis(50);
/// An admin server answers at once, or its program hangs.
const ANSWER: Duration = Duration::from_secs(5);

/// Waits until something is so, for tests.
///
/// # Panics
///
/// When it is not so within the limit.
pub async fn until(limit: Duration, what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !is_so().await {
        assert!(started.elapsed() < limit, "{what}: not within {limit:?}");
        tokio::time::sleep(OFTEN).await;
    }
}

/// An address on loopback. Another process may take it between its choice and its use; then the start fails and says so.
pub fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// A program that runs. It ends with its handle, and shows its log when the test has failed.
pub struct Program {
    name: String,
    process: Child,
    admin: SocketAddr,
    log: PathBuf,
    _directory: tempfile::TempDir,
}

impl Program {
    /// Starts a command that was told to serve its metrics at `admin`; `name` is what people call it.
    pub fn start(name: &str, mut command: Command, admin: SocketAddr) -> io::Result<Self> {
        let directory = tempfile::tempdir()?;
        let log = directory.path().join("log");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log)?);
        Ok(Self { name: name.to_owned(), process: command.spawn()?, admin, log, _directory: directory })
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Whether it has not ended.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// What it serves at a path of its admin address, if it answers.
    fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.admin).ok()?;
        stream.set_read_timeout(Some(ANSWER)).ok()?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.name).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.starts_with("HTTP/1.1 200").then(|| body.to_owned())
    }

    /// Whether it says that it is healthy.
    pub fn is_healthy(&self) -> bool {
        self.get("/healthz").is_some()
    }

    /// Whether it says that it is ready.
    pub fn is_ready(&self) -> bool {
        self.get("/readyz").is_some()
    }

    /// Its metrics, a line each; none while it does not answer.
    pub fn metrics(&self) -> Vec<String> {
        let text = self.get("/metrics").unwrap_or_default();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    /// The value of a metric, named with its labels.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics().iter().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let id = self.process.id().try_into().map_err(io::Error::other)?;
        Ok(kill(Pid::from_raw(id), signal)?)
    }

    /// Ends it in an orderly way; whether it said that all was well.
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
