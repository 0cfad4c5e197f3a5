//! Requests from this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{sleep, timeout};

use super::answers::{Answer, Line, fold};
use super::question::{How, Question};

/// Without --from-here, a cluster that does not answer within this time is out of reach.
const REACHABLE: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(300);
/// As many requests as the clients in the cluster send.
const ANSWERS: usize = 4;
const ATTEMPTS: usize = 6;
const LARGEST_ANSWER: u64 = 64 * 1024;

/// The answers to all questions. None: no address is reachable, and nobody insists.
pub(crate) async fn ask(questions: &[Question], insist: bool) -> Option<Vec<Answer>> {
    if !insist {
        let first = join_all(questions.iter().map(|question| attempt(question, REACHABLE))).await;
        if first.iter().all(|line| line.error.is_some() && line.status.is_none()) {
            return None;
        }
    }
    Some(join_all(questions.iter().map(repeat)).await)
}

async fn repeat(question: &Question) -> Answer {
    let mut lines = Vec::new();
    for _ in 0..ATTEMPTS {
        lines.push(attempt(question, TIMEOUT).await);
        if lines.iter().filter(|line| line.error.is_none()).count() >= ANSWERS {
            break;
        }
        sleep(PAUSE).await;
    }
    fold(lines.iter())
}

async fn attempt(question: &Question, limit: Duration) -> Line {
    let failed = |error: &str| Line { error: Some(error.to_owned()), ..Line::default() };
    let asked = async {
        match &question.how {
            How::Tcp => tcp(question.address).await,
            How::Udp => udp(question.address).await,
            How::Connect => TcpStream::connect(question.address).await.map(|_| Line::default()),
            How::Http { path } => http(question.address, path).await,
        }
    };
    let line = match timeout(limit, asked).await {
        Ok(Ok(line)) => line,
        Ok(Err(error)) => failed(match error.kind() {
            std::io::ErrorKind::ConnectionRefused => "refused",
            std::io::ErrorKind::ConnectionReset => "reset",
            std::io::ErrorKind::HostUnreachable | std::io::ErrorKind::NetworkUnreachable => "unreachable",
            _ => "failed",
        }),
        Err(_) => failed("timed out"),
    };
    Line { own: own_address(question.address).await, ..line }
}

/// The echo program greets with a line of JSON.
async fn tcp(address: SocketAddr) -> std::io::Result<Line> {
    let stream = BufReader::new(TcpStream::connect(address).await?);
    let mut greeting = String::new();
    stream.take(LARGEST_ANSWER).read_line(&mut greeting).await?;
    parse(&greeting)
}

async fn udp(address: SocketAddr) -> std::io::Result<Line> {
    let socket = UdpSocket::bind(any(address)).await?;
    socket.connect(address).await?;
    socket.send(b"ask").await?;
    let mut buffer = vec![0; 65_535];
    let length = socket.recv(&mut buffer).await?;
    parse(&String::from_utf8_lossy(&buffer[..length]))
}

async fn http(address: SocketAddr, path: &str) -> std::io::Result<Line> {
    let mut stream = TcpStream::connect(address).await?;
    // Envoy refuses HTTP/1.0 before it reads the path, which would not be in its log then.
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(LARGEST_ANSWER).read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.split_whitespace().nth(1).and_then(|status| status.parse().ok());
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    // An answer that is not the echo program's shows only that there was one.
    Ok(parse(body).unwrap_or(Line { status, error: Some("answered".to_owned()), ..Line::default() }))
}

fn parse(text: &str) -> std::io::Result<Line> {
    serde_json::from_str(text.trim()).map_err(std::io::Error::other)
}

/// The address that this machine sends from. Connecting a UDP socket sends nothing.
async fn own_address(to: SocketAddr) -> Option<IpAddr> {
    let socket = UdpSocket::bind(any(to)).await.ok()?;
    socket.connect(to).await.ok()?;
    socket.local_addr().ok().map(|local| local.ip())
}

fn any(to: SocketAddr) -> SocketAddr {
    let ip: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    SocketAddr::new(ip, 0)
}
