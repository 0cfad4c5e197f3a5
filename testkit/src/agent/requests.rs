//! Requests to an agent as kube-proxy sends them, by curl.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use super::{Agent, DEADLINE};

impl Agent {
    /// Sends a request with kube-proxy's certificate alone, and returns the status code.
    pub fn ask_without_token(&self, path: &str) -> u16 {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "40"]);
        curl.args(self.certificates()).args(self.url(path));
        String::from_utf8_lossy(&curl.output().unwrap().stdout).parse().unwrap_or(0)
    }

    /// Returns curl's arguments for the certificates of agent and kube-proxy.
    fn certificates(&self) -> Vec<OsString> {
        [("--cacert", "ca.crt"), ("--cert", "client.crt"), ("--key", "client.key")]
            .into_iter()
            .flat_map(|(flag, file)| [flag.into(), self.file(file).into()])
            .collect()
    }

    /// Returns curl's arguments for a path on the agent.
    pub fn url(&self, path: &str) -> [String; 3] {
        let (name, port) = (self.name(), self.address.port());
        let resolve = format!("{name}:{port}:{}", self.address.ip());
        ["--resolve".to_owned(), resolve, format!("https://{name}:{port}{path}")]
    }

    /// Prepares a request with kube-proxy's token. The last argument is the path.
    fn curl(&self, arguments: &[&str]) -> Command {
        let (path, flags) = arguments.split_last().unwrap();
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--path-as-is"])
            .args(self.certificates())
            .args(["-H", &format!("Authorization: Bearer {}", self.kube_proxy_token())])
            .args(flags)
            .args(self.url(path));
        curl
    }

    /// Returns the status code and the body of a response, or 0 and the error.
    pub fn ask(&self, arguments: &[&str]) -> (u16, String) {
        let flags = ["--max-time", "40", "-w", "\n%{http_code}"];
        let output = self.curl(&[&flags, arguments].concat()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        match text.rsplit_once('\n') {
            Some((body, code)) if output.status.success() => (code.parse().unwrap_or(0), body.to_owned()),
            _ => (0, String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// Returns the lines of a response while they arrive. The response ends after four minutes,
    /// unless the arguments say otherwise.
    pub fn follow(&self, arguments: &[&str]) -> Lines {
        let flags = ["--no-buffer", "--max-time", "240"];
        let mut curl = self.curl(&[&flags, arguments].concat());
        let mut process = curl.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Lines { process, lines }
    }
}

/// A response in progress.
pub struct Lines {
    process: Child,
    lines: mpsc::Receiver<String>,
}

impl Lines {
    /// Returns the next line, or `None` at the end.
    pub fn next(&self) -> Option<String> {
        match self.lines.recv_timeout(DEADLINE) {
            Ok(line) => Some(line),
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("no line within {DEADLINE:?}"),
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
