//! The long-lived connection: it reports when it breaks, and only then.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    process::{ChildStderr, ChildStdout, Stdio},
    sync::mpsc,
    thread,
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

/// Passes one connection on to a port. Tells of each line that comes back.
fn relay(port: u16) -> (String, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap().to_string();
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        let (near, far) = (listener.accept().unwrap().0, TcpStream::connect(("127.0.0.1", port)).unwrap());
        let (mut from_near, mut to_far) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        thread::spawn(move || {
            let _ = std::io::copy(&mut from_near, &mut to_far);
            let _ = to_far.shutdown(Shutdown::Write);
        });
        for line in BufReader::new(far).lines().map_while(Result::ok) {
            if (&near).write_all(format!("{line}\n").as_bytes()).is_err() {
                break;
            }
            let _ = sender.send(());
        }
    });
    (target, lines)
}

#[test]
fn a_connection_that_holds_says_how_often_its_lines_came_back() {
    let server = Server::start();
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let (target, lines) = relay(server.tcp);
        let mut holding = hold(&target, "30000");
        assert_eq!(holding.line()["peerIp"], "127.0.0.1");
        // The greeting and five answers.
        assert_eq!(lines.iter().take(6).count(), 6);
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
    // The time is over only for the one that falls silent.
    for (error, timeout) in [("timed out", "2000"), ("bad answer", "60000")] {
        let mut holding = hold(&target, timeout);
        assert_eq!(holding.line(), json!({}));
        assert_eq!(holding.line()["error"], error);
        assert_eq!(holding.end().0, Some(1));
    }
}

#[test]
fn a_signal_does_not_hide_a_line_that_is_never_echoed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap().to_string();
    let (told, pending) = mpsc::channel();
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        (&stream).write_all(b"{}\n").unwrap();
        let mut lines = BufReader::new(&stream).lines();
        (&stream).write_all(format!("{}\n", lines.next().unwrap().unwrap()).as_bytes()).unwrap();
        lines.next().unwrap().unwrap();
        told.send(()).unwrap();
        lines.count();
    });
    let mut holding = hold(&target, "500");
    assert_eq!(holding.line(), json!({}));
    pending.recv().unwrap();
    holding.process.signal(Signal::SIGTERM);
    assert_eq!(holding.line()["error"], "timed out");
    let (code, summary) = holding.end();
    assert_eq!((code, &summary["exchanged"]), (Some(1), &json!(1)));
}

#[test]
fn a_signal_before_the_first_echo_is_a_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let holding = hold(&listener.local_addr().unwrap().to_string(), "60000");
    let _silent = listener.accept().unwrap();
    holding.process.signal(Signal::SIGTERM);
    let (code, summary) = holding.end();
    assert_eq!((code, &summary["exchanged"]), (Some(1), &json!(0)));
}
