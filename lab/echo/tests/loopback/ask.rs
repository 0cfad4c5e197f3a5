//! The client's output and exit codes.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, UdpSocket},
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::echo::{Running, Server, ask, echo};

#[test]
fn every_protocol_is_answered_in_both_families() {
    let server = Server::start();
    for (protocol, port) in [("http", server.http), ("tcp", server.tcp), ("udp", server.udp)] {
        for (target, ip) in [("127.0.0.1", "127.0.0.1"), ("[::1]", "::1"), ("localhost", "")] {
            let asked = ask(&[protocol, &format!("{target}:{port}"), "--count", "3", "--interval", "10"]);
            assert!(asked.success, "{protocol} {target}: {:?}", asked.lines);
            assert_eq!(asked.lines.len(), 3);
            assert_eq!(asked.summary, json!({"sent": 3, "answered": 3, "failed": 0}));
            let line = &asked.lines[0];
            assert_eq!(line["proto"], protocol);
            assert!(ip.is_empty() || line["peerIp"] == ip, "{line}");
            assert!(line["elapsedMs"].as_f64().unwrap() > 0.0, "{line}");
            let mut numbers: Vec<_> = asked.lines.iter().map(|line| line["seq"].as_u64().unwrap()).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, [1, 2, 3]);
        }
    }
}

#[test]
fn every_question_has_a_connection_of_its_own() {
    let server = Server::start();
    let target = format!("127.0.0.1:{}", server.http);
    let asked = ask(&["http", &target, "--count", "5", "--interval", "1"]);
    let mut peers: Vec<_> = asked.lines.iter().map(|line| line["peer"].as_str().unwrap()).collect();
    peers.sort_unstable();
    peers.dedup();
    assert_eq!(peers.len(), 5);
}

#[test]
fn the_source_address_the_path_and_the_host_header_are_as_told() {
    let server = Server::start();
    let target = format!("127.0.0.1:{}", server.http);
    let asked =
        ask(&["http", &target, "--bind", "127.0.0.9", "--path", "/x?y=z", "--host-header", "shop.example"]);
    let line = &asked.lines[0];
    assert_eq!((&line["peerIp"], &line["path"]), (&json!("127.0.0.9"), &json!("/x?y=z")));
    assert_eq!(line["host"], "shop.example");
    assert_eq!(ask(&["http", &target]).lines[0]["host"], target);

    for (protocol, port) in [("tcp", server.tcp), ("udp", server.udp)] {
        let asked = ask(&[protocol, &format!("127.0.0.1:{port}"), "--bind", "127.0.0.9"]);
        assert_eq!(asked.lines[0]["peerIp"], "127.0.0.9");
    }
}

#[test]
fn what_is_no_answer_is_named_and_fails() {
    let server = Server::start();
    // Bound, so that no other process gets the ports, but never read from.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent = format!("127.0.0.1:{}", silent.local_addr().unwrap().port());
    let silent_udp = format!("127.0.0.1:{}", silent_udp.local_addr().unwrap().port());
    let nobody = "127.0.0.1:1";
    let http = format!("127.0.0.1:{}", server.http);
    for (arguments, error) in [
        (&["http", nobody][..], "refused"),
        (&["tcp", nobody], "refused"),
        (&["udp", nobody], "refused"),
        (&["http", &silent, "--timeout", "100"], "timed out"),
        (&["tcp", &silent, "--timeout", "100"], "timed out"),
        (&["udp", &silent_udp, "--timeout", "100"], "timed out"),
        (&["http", &http, "--path", "/?delay=no"], "status 400"),
        (&["http", &http, "--bind", "192.0.2.1"], "bind failed"),
        (&["http", &http, "--bind", "::1"], "unknown host"),
    ] {
        let asked = ask(arguments);
        assert_eq!(asked.lines[0]["error"], error, "{arguments:?}: {:?}", asked.lines);
        assert_eq!(asked.summary, json!({"sent": 1, "answered": 0, "failed": 1, "firstError": error}));
        assert!(!asked.success);
    }
}

#[test]
fn a_server_that_speaks_otherwise_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for reply in ["SSH-2.0\r\n", "", "half a line", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"] {
            let (mut stream, _) = listener.accept().unwrap();
            if !reply.starts_with("half") {
                assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
            }
            stream.write_all(reply.as_bytes()).unwrap();
        }
    });
    let error = |protocol| ask(&[protocol, &target]).lines[0]["error"].clone();
    assert_eq!(error("http"), "bad answer");
    assert_eq!(error("http"), "closed");
    assert_eq!(error("tcp"), "closed");
    assert_eq!(error("http"), "closed");
}

#[test]
fn the_pace_is_kept_while_answers_are_outstanding() {
    let server = Server::start();
    let target = format!("127.0.0.1:{}", server.http);
    let started = Instant::now();
    let asked = ask(&["http", &target, "--path", "/?delay=300", "--count", "100", "--interval", "10"]);
    let elapsed = started.elapsed();
    assert!(asked.success, "{}", asked.summary);
    assert!(elapsed >= Duration::from_millis(1290), "{elapsed:?}");
    // Sequentially they would take 30 s.
    assert!(elapsed < Duration::from_secs(15), "{elapsed:?}");
}

#[test]
fn without_a_count_it_asks_until_it_is_told_to_end_and_sums_up() {
    let server = Server::start();
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut child = echo()
            .args(["ask", "tcp", &format!("127.0.0.1:{}", server.tcp), "--count", "0", "--interval", "10"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
        let stderr = child.stderr.take().unwrap();
        let mut running = Running(child);
        assert_eq!(answers.by_ref().take(20).count(), 20);
        running.signal(signal);
        let rest = answers.count();
        assert!(running.wait().success());
        let summary: Value = serde_json::from_str(&std::io::read_to_string(stderr).unwrap()).unwrap();
        let sent = summary["sent"].as_u64().unwrap();
        assert_eq!(summary, json!({"sent": sent, "answered": sent, "failed": 0}));
        assert_eq!(sent, 20 + rest as u64);
    }
}
