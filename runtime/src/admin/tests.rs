//! Peers that hold connections open, with limits short enough for tests.

use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_mins(1);

fn limits(places: usize, request: Duration, grace: Duration) -> Limits {
    Limits { door: DoorLimits { places, per_second: 1000 }, request, grace }
}

struct Served {
    address: SocketAddr,
    shutdown: Shutdown,
    task: tokio::task::JoinHandle<()>,
}

async fn serve(limits: Limits) -> Served {
    let admin = Admin { limits, ..Admin::bind((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap() };
    let (address, shutdown) = (admin.address(), Shutdown::default());
    let task =
        tokio::spawn(admin.serve(Arc::default(), Readiness::default(), Health::default(), shutdown.clone()));
    Served { address, shutdown, task }
}

async fn say(address: SocketAddr, words: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(words.as_bytes()).await.unwrap();
    stream
}

/// Waits for the server to close the connection.
async fn hear(mut stream: TcpStream) -> String {
    let mut heard = Vec::new();
    // A reset counts as closed.
    timeout(LONG / 2, stream.read_to_end(&mut heard)).await.expect("the connection stays open").ok();
    String::from_utf8(heard).unwrap()
}

#[tokio::test]
async fn a_request_that_does_not_come_to_an_end_is_cut_off() {
    let served = serve(limits(8, SHORT, LONG)).await;
    let silent = say(served.address, "").await;
    let slow = say(served.address, "GET /healthz HTTP/1.1\r\nHost:").await;
    assert_eq!(hear(silent).await, "");
    assert_eq!(hear(slow).await, "");
}

#[tokio::test]
async fn callers_that_hold_every_connection_make_room_for_the_next() {
    let served = serve(limits(2, LONG, LONG)).await;
    let idle = [say(served.address, "").await, say(served.address, "").await];
    let third = say(served.address, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(hear(third).await.starts_with("HTTP/1.1 200 OK\r\n"));
    let [first, _second] = idle;
    assert_eq!(hear(first).await, "", "it had been there the longest");
}

#[tokio::test]
async fn an_idle_connection_does_not_hold_up_the_end() {
    let served = serve(limits(2, LONG, SHORT)).await;
    let idle = say(served.address, "").await;
    // Once this request is answered, the previous connection has been accepted.
    hear(say(served.address, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await).await;
    served.shutdown.request();
    timeout(LONG / 2, served.task).await.expect("it goes on").unwrap();
    assert_eq!(hear(idle).await, "");
    assert!(TcpStream::connect(served.address).await.is_err(), "the socket is open still");
}
