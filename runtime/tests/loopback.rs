//! A small program built from this crate, tested over the loopback from start to shutdown.

#![cfg(test)]

use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use isp_runtime::{
    admin::Admin,
    health::Health,
    readiness::Readiness,
    shutdown::{Shutdown, Tasks, TasksError},
};
use prometheus_client::{metrics::counter::Counter, registry::Registry};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinHandle,
    time::timeout,
};

const PATIENCE: Duration = Duration::from_secs(30);

struct Program {
    address: SocketAddr,
    shutdown: Shutdown,
    readiness: Readiness,
    requests: Counter,
    finished: JoinHandle<Result<(), TasksError>>,
}

async fn program(address: impl Into<SocketAddr>) -> Program {
    let (shutdown, readiness, requests) = (Shutdown::default(), Readiness::default(), Counter::default());
    let mut registry = Registry::with_prefix("isp");
    registry.register("requests", "Requests that were forwarded", requests.clone());
    let admin = Admin::bind(address.into()).await.unwrap();
    let address = admin.address();
    let mut tasks = Tasks::new(shutdown.clone());
    tasks.spawn(
        "admin",
        admin.serve(Arc::new(registry), readiness.clone(), Health::default(), shutdown.clone()),
    );
    let finished = tokio::spawn(tasks.finish(PATIENCE));
    Program { address, shutdown, readiness, requests, finished }
}

/// Sends a request and reads the response until the server closes the connection.
async fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A server that closes with unread data resets the connection after its response.
    timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("no end").ok();
    String::from_utf8(answer).unwrap()
}

/// The status and the body.
async fn get(program: &Program, path: &str) -> (String, String) {
    let answer = exchange(program.address, &format!("GET {path} HTTP/1.1\r\nHost: admin\r\n\r\n")).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head["HTTP/1.1 ".len()..][..3].to_owned(), body.to_owned())
}

fn said(status: &str, body: &str) -> (String, String) {
    (status.to_owned(), body.to_owned())
}

#[tokio::test]
async fn a_program_becomes_ready_as_what_it_waits_for_arrives() {
    let program = program((Ipv4Addr::LOCALHOST, 0)).await;
    let view = program.readiness.register("view");
    let certificate = program.readiness.register("certificate");
    assert_eq!(get(&program, "/healthz").await, said("200", "ok\n"));
    assert_eq!(get(&program, "/readyz").await, said("503", "certificate\nview\n"));
    drop(certificate);
    assert_eq!(get(&program, "/readyz?verbose").await, said("503", "view\n"));
    drop(view);
    assert_eq!(get(&program, "/readyz").await, said("200", "ok\n"));
}

#[tokio::test]
async fn metrics_are_open_metrics_and_current() {
    let program = program((Ipv6Addr::LOCALHOST, 0)).await;
    program.requests.inc_by(41);
    program.requests.inc();
    let answer = exchange(program.address, "GET /metrics HTTP/1.1\r\nHost: admin\r\n\r\n").await;
    assert!(answer.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"));
    assert!(answer.contains("connection: close\r\n"), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    assert_eq!(
        body,
        "# HELP isp_requests Requests that were forwarded.\n\
         # TYPE isp_requests counter\n\
         isp_requests_total 42\n\
         # EOF\n"
    );
}

#[tokio::test]
async fn what_is_not_served_is_refused() {
    let program = program((Ipv4Addr::LOCALHOST, 0)).await;
    assert_eq!(get(&program, "/debug").await.0, "404");
    let begins = |request: String| async move { exchange(program.address, &request).await[..12].to_owned() };
    assert_eq!(begins("POST /metrics HTTP/1.1\r\nHost: admin\r\n\r\n".to_owned()).await, "HTTP/1.1 405");
    assert_eq!(begins("nonsense\r\n\r\n".to_owned()).await, "HTTP/1.1 400");
    let large = format!("GET /healthz HTTP/1.1\r\nHost: admin\r\nX: {}\r\n\r\n", "x".repeat(16 * 1024));
    assert_eq!(begins(large).await, "HTTP/1.1 431");
}

#[tokio::test]
async fn a_head_request_gets_no_body() {
    let program = program((Ipv4Addr::LOCALHOST, 0)).await;
    let answer = exchange(program.address, "HEAD /healthz HTTP/1.1\r\nHost: admin\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn a_body_is_not_waited_for() {
    let program = program((Ipv4Addr::LOCALHOST, 0)).await;
    let request = "GET /healthz HTTP/1.1\r\nHost: admin\r\nContent-Length: 1000000\r\n\r\n";
    assert!(exchange(program.address, request).await.ends_with("\r\n\r\nok\n"));
}

#[tokio::test]
async fn an_address_in_use_is_named_with_the_way_out() {
    let program = program((Ipv4Addr::LOCALHOST, 0)).await;
    let error = Admin::bind(program.address).await.unwrap_err().to_string();
    assert!(error.contains(&program.address.to_string()) && error.contains("free port"), "{error}");
}

#[tokio::test]
async fn the_program_ends_when_it_is_told_to() {
    let program = program((Ipv4Addr::LOCALHOST, 0)).await;
    assert_eq!(get(&program, "/healthz").await.0, "200");
    program.shutdown.request();
    timeout(PATIENCE, program.finished).await.expect("it goes on").unwrap().unwrap();
    assert!(TcpStream::connect(program.address).await.is_err(), "the socket is open still");
}
