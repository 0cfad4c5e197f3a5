//! An agent as a process in front of a real API server on loopback, for tests and the benchmark.

mod install;
mod requests;
mod start;

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

pub use self::install::{api_server, install, token};
pub use self::requests::Lines;
use self::start::CommandLine;
pub use self::start::{AgentToken, Builder};
use crate::program::Program;

/// The node of the agent.
pub const NODE: &str = "work-1";
/// Generous, because test machines are busy.
const DEADLINE: Duration = Duration::from_mins(2);

/// A running agent, and a directory with its files.
pub struct Agent {
    /// The process.
    pub program: Program,
    /// Where it serves kube-proxy.
    pub address: SocketAddr,
    /// Its admin address.
    pub admin: SocketAddr,
    command: CommandLine,
    directory: tempfile::TempDir,
}

impl Agent {
    /// An agent of this program.
    pub fn of(program: impl Into<OsString>) -> Builder {
        Builder::new(program.into())
    }

    /// Kills the agent and restarts it, as the kubelet does in the same pod.
    pub fn restart(&mut self) {
        self.program.signal(Signal::SIGKILL).unwrap();
        self.start_again();
        self.wait("serves again", |agent| agent.ask(&["/version"]).0 == 200);
    }

    /// Restarts an agent that has ended.
    pub fn start_again(&mut self) {
        self.program = self.command.start(self.admin);
    }

    /// The kubeconfig that kube-proxy would read.
    pub fn mirrored(&self) -> PathBuf {
        self.file("serving/kubeconfig.conf")
    }

    /// Writes the certificates in the kubeconfig to files, for programs that read no kubeconfig.
    fn unpack(&self) {
        let config: Value = serde_json::from_str(&fs::read_to_string(self.mirrored()).unwrap()).unwrap();
        let (cluster, user) = (&config["clusters"][0]["cluster"], &config["users"][0]["user"]);
        for (file, data) in [
            ("ca.crt", &cluster["certificate-authority-data"]),
            ("client.crt", &user["client-certificate-data"]),
            ("client.key", &user["client-key-data"]),
        ] {
            let bytes: k8s_openapi::ByteString = serde_json::from_value(data.clone()).unwrap();
            fs::write(self.file(file), bytes.0).unwrap();
        }
        fs::write(self.file("name"), cluster["tls-server-name"].as_str().unwrap()).unwrap();
    }

    /// Returns the server name that kube-proxy asks for.
    pub fn name(&self) -> String {
        fs::read_to_string(self.file("name")).unwrap()
    }

    /// Waits until the view is known, a moment after the agent serves.
    pub fn wait_for_services(&self) {
        self.wait("knows its view", |agent| agent.ask(&["/api/v1/services?limit=1"]).0 == 200);
    }

    /// Waits until the condition holds. A failure has the agent's last answer.
    pub fn wait(&self, what: &str, done: impl Fn(&Self) -> bool) {
        let started = Instant::now();
        while !done(self) {
            let last = || self.ask(&["/version"]);
            assert!(started.elapsed() < DEADLINE, "not within {DEADLINE:?}: the agent {what}: {:?}", last());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The process id.
    pub fn process(&self) -> u32 {
        self.program.id()
    }

    /// The metrics, one per line.
    pub fn metrics(&self) -> Vec<String> {
        self.program.metrics()
    }

    /// The path of one of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// kube-proxy's token.
    pub fn kube_proxy_token(&self) -> String {
        fs::read_to_string(self.file("kube-proxy")).unwrap()
    }
}
