//! The long-lived connection: it reports when it breaks, and only then.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    process::{ChildStderr, ChildStdout, Stdio},
    thread,
    time::Duration,
};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::echo::{Running, Server, echo};

struct Holding {
    process: Running,
    lines: BufReader<ChildStdout>,
    errors: ChildStderr,
}

fn hold(target: &str, timeout: &str) -> Holding {
    let mut child = echo()
        .args(["hold", "tcp", target, "--interval", "10", "--timeout", timeout])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (lines, errors) = (BufReader::new(child.stdout.take().unwrap()), child.stderr.take().unwrap());
    Holding { process: Running(child), lines, errors }
}

impl Holding {
    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// The exit code and the summary.
    fn end(mut self) -> (Option<i32>, Value) {
        let code = self.process.wait().code();
        (code, serde_json::from_str(&std::io::read_to_string(self.errors).unwrap()).unwrap())
    }
}

#[test]
fn a_connection_that_holds_says_how_often_its_lines_came_back() {
    let server = Server::start();
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut holding = hold(&format!("127.0.0.1:{}", server.tcp), "5000");
        assert_eq!(holding.line()["peerIp"], "127.0.0.1");
        thread::sleep(Duration::from_millis(200));
        holding.process.signal(signal);
        let (code, summary) = holding.end();
        assert_eq!(code, Some(0), "{summary}");
        assert!(summary["exchanged"].as_u64().unwrap() > 3, "{summary}");
        assert!(summary["slowestMs"].as_f64().unwrap() > 0.0, "{summary}");
        assert_eq!(summary.get("error"), None);
    }
}

#[test]
fn a_connection_that_breaks_is_named_and_fails() {
    let server = Server::start();
    let mut holding = hold(&format!("127.0.0.1:{}", server.tcp), "5000");
    assert_eq!(holding.line()["proto"], "tcp");
    server.process.signal(Signal::SIGTERM);
    assert_eq!(holding.line()["error"], "closed");
    let (code, summary) = holding.end();
    assert_eq!((code, &summary["error"]), (Some(1), &json!("closed")));

    let mut holding = hold("127.0.0.1:1", "5000");
    assert_eq!(holding.line()["error"], "refused");
    assert_eq!(holding.end().0, Some(1));
}

#[test]
fn a_server_that_falls_silent_or_says_something_else_breaks_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let (silent, _) = listener.accept().unwrap();
        (&silent).write_all(b"{}\n").unwrap();
        let (mut other, _) = listener.accept().unwrap();
        other.write_all(b"{}\nsomething else\n").unwrap();
        // `silent` stays open until the peer closes it.
        BufReader::new(silent).lines().count();
    });
    for error in ["timed out", "bad answer"] {
        let mut holding = hold(&target, "300");
        assert_eq!(holding.line(), json!({}));
        assert_eq!(holding.line()["error"], error);
        assert_eq!(holding.end().0, Some(1));
    }
}
