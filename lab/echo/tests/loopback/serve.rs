//! The server's answers to callers other than its own client.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{IpAddr, SocketAddr, TcpStream, UdpSocket},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::echo::{Server, echo};

const LOOPBACK: [&str; 2] = ["127.0.0.1", "::1"];

fn connect(ip: &str, port: u16) -> TcpStream {
    let stream = TcpStream::connect(SocketAddr::new(ip.parse().unwrap(), port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

/// Sends a request verbatim and returns the status line and the body.
fn http(ip: &str, port: u16, request: &str) -> (String, String) {
    let mut stream = connect(ip, port);
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

#[test]
fn http_tells_the_addresses_the_request_and_the_pod() {
    let server = Server::start();
    for ip in LOOPBACK {
        let request = "PUT /any/path?x=1 HTTP/1.1\r\nHost: shop.example\r\nX-Forwarded-For: 10.90.0.100\r\n\
                       x-forwarded-for: 10.0.0.1\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
        let (status, body) = http(ip, server.http, request);
        assert_eq!(status, "HTTP/1.1 200 OK");
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(answer["proto"], "http");
        assert_eq!(answer["peerIp"], ip);
        assert_eq!(answer["peer"].as_str().unwrap().parse::<SocketAddr>().unwrap().ip().to_string(), ip);
        let local = SocketAddr::new(ip.parse().unwrap(), server.http);
        assert_eq!(answer["local"], local.to_string());
        assert_eq!(answer["method"], "PUT");
        assert_eq!(answer["path"], "/any/path?x=1");
        assert_eq!(answer["host"], "shop.example");
        assert_eq!(answer["headers"]["x-forwarded-for"], "10.90.0.100, 10.0.0.1");
        assert_eq!(answer["bodyBytes"], 5);
        assert_eq!(answer["pod"], "echo-1");
        assert_eq!(answer["namespace"], "demo");
        assert_eq!(answer["node"], "work-1");
        assert_eq!(answer["podIp"], "10.244.1.2");
    }
}

#[test]
fn http_answers_probes_and_refuses_what_is_out_of_bounds() {
    let server = Server::start();
    let get = |path: &str| http("127.0.0.1", server.http, &format!("GET {path} HTTP/1.0\r\n\r\n"));
    assert_eq!(get("/healthz"), ("HTTP/1.0 200 OK".to_owned(), "ok".to_owned()));
    let (status, body) = get("/?delay=99999999");
    assert_eq!(status, "HTTP/1.0 400 Bad Request");
    assert!(body.contains("up to 60000"), "{body}");

    let mut stream = connect("127.0.0.1", server.http);
    stream.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n").unwrap();
    // The server may close the connection before it has read everything.
    stream.write_all(&vec![b'x'; 2_000_000]).ok();
    let mut status = String::new();
    BufReader::new(stream).read_line(&mut status).unwrap();
    assert_eq!(status.trim_end(), "HTTP/1.1 413 Payload Too Large");
}

#[test]
fn tcp_greets_and_then_returns_every_byte_of_a_long_lived_connection() {
    let server = Server::start();
    for ip in LOOPBACK {
        let mut stream = connect(ip, server.tcp);
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut greeting = String::new();
        reader.read_line(&mut greeting).unwrap();
        let greeting: Value = serde_json::from_str(&greeting).unwrap();
        assert_eq!(greeting["proto"], "tcp");
        assert_eq!(greeting["peer"], stream.local_addr().unwrap().to_string());
        assert_eq!(greeting["local"], stream.peer_addr().unwrap().to_string());
        assert_eq!(greeting["pod"], "echo-1");
        for line in ["one\n", "two\n"] {
            stream.write_all(line.as_bytes()).unwrap();
            let mut back = String::new();
            reader.read_line(&mut back).unwrap();
            assert_eq!(back, line);
        }
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(reader.read(&mut [0]).unwrap(), 0);
    }
}

#[test]
fn udp_answers_from_the_address_that_was_asked() {
    let server = Server::start();
    // Routing would not choose 127.0.0.2 as the source of an answer to 127.0.0.1.
    for (from, to) in [("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "127.0.0.2"), ("::1", "::1")] {
        check_udp(from, to, server.udp);
    }
    let server = Server::start_on("0.0.0.0");
    check_udp("127.0.0.1", "127.0.0.2", server.udp);
}

fn check_udp(from: &str, to: &str, port: u16) {
    let socket = UdpSocket::bind((from.parse::<IpAddr>().unwrap(), 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let to = SocketAddr::new(to.parse().unwrap(), port);
    socket.send_to(b"who am I", to).unwrap();
    let mut buffer = [0; 4096];
    let (length, answered_by) = socket.recv_from(&mut buffer).unwrap();
    let answer: Value = serde_json::from_slice(&buffer[..length]).unwrap();
    assert_eq!(answered_by, to);
    assert_eq!(answer["proto"], "udp");
    assert_eq!(answer["peer"], socket.local_addr().unwrap().to_string());
    assert_eq!(answer["local"], to.to_string());
    assert_eq!(answer["payload"], "who am I");
    assert_eq!(answer["payloadBytes"], 8);
    assert_eq!(answer["node"], "work-1");
}

#[test]
fn callers_beyond_the_bound_wait_and_are_served_when_others_leave() {
    let server = Server::start();
    let open: Vec<_> = (0..448).map(|_| connect("127.0.0.1", server.tcp)).collect();
    for stream in &open {
        BufReader::new(stream).read_line(&mut String::new()).unwrap();
    }
    let waiting = connect("127.0.0.1", server.tcp);
    waiting.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(BufReader::new(&waiting).read_line(&mut String::new()).is_err(), "served beyond the bound");
    drop(open);
    waiting.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    assert!(BufReader::new(&waiting).read_line(&mut String::new()).unwrap() > 0);
}

#[test]
fn a_port_in_use_is_an_error_that_names_the_address_and_the_option() {
    let server = Server::start();
    let output = echo()
        .args(["serve", "--http", &server.http.to_string(), "--tcp", "0", "--udp", "0"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains(&format!("cannot listen on [::]:{} for http", server.http)), "{error}");
    assert!(error.contains("--http"), "{error}");
}

#[test]
fn a_delayed_answer_takes_its_time() {
    let server = Server::start();
    let started = Instant::now();
    http("127.0.0.1", server.http, "GET /?delay=200 HTTP/1.0\r\n\r\n");
    assert!(started.elapsed() >= Duration::from_millis(200));
}
