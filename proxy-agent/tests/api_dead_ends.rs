//! An API server that is unreachable or silent: the agent notices it, answers with an error, and
//! recovers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener as BlockingListener};
use std::time::{Duration, Instant};

use isp_lab::ControlPlane;
use isp_testkit::agent::{self, Agent};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

const SERVICES: &str = "/api/v1/services?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

/// The state of the link to the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    Open,
    /// Connections stay open, and no byte passes.
    Silent,
    /// Connections break, new ones as well.
    Cut,
}

/// A link to the API server that can fail.
struct Relay {
    port: u16,
    link: watch::Sender<Link>,
}

impl Relay {
    async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let link = watch::Sender::new(Link::Open);
        let links = link.clone();
        tokio::spawn(async move {
            loop {
                let (near, _) = listener.accept().await.unwrap();
                tokio::spawn(carry(near, server, links.subscribe()));
            }
        });
        Self { port, link }
    }

    fn set(&self, link: Link) {
        self.link.send_replace(link);
    }
}

async fn carry(near: TcpStream, server: SocketAddr, mut link: watch::Receiver<Link>) {
    let far = TcpStream::connect(server).await.unwrap();
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    let (there, back) = (link.clone(), link.clone());
    tokio::select! {
        () = copy(near_in, far_out, there) => {}
        () = copy(far_in, near_out, back) => {}
        _ = link.wait_for(|link| *link == Link::Cut) => {}
    }
}

async fn copy(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut link: watch::Receiver<Link>,
) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        link.wait_for(|link| *link == Link::Open).await.unwrap();
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_way_that_falls_silent_or_breaks_is_noticed_and_requests_go_on_when_it_is_back() {
    let cluster = ControlPlane::shared().await.unwrap();
    let mut api_server = agent::api_server(cluster);
    let server = api_server["server"].as_str().unwrap().trim_start_matches("https://").parse().unwrap();
    let relay = Relay::start(server).await;
    // A name with two addresses. The first one accepts connections and never answers. (A machine
    // without IPv6 has only the other one.)
    let _mute = BlockingListener::bind((Ipv6Addr::LOCALHOST, relay.port));
    api_server["server"] = format!("https://localhost:{}", relay.port).into();
    let agent = Agent::of(env!("CARGO_BIN_EXE_proxy-agent")).api_server(api_server).start(cluster).await;
    agent.wait_for_services();

    // Silence: the open watch ends although nobody closed a connection, and new requests fail with
    // the reason.
    let watch = agent.follow(&["-HAccept: application/json", SERVICES]);
    assert!(watch.next().is_some());
    relay.set(Link::Silent);
    let since = Instant::now();
    while watch.next().is_some() {}
    assert!(since.elapsed() < Duration::from_secs(35), "{:?}", since.elapsed());
    let since = Instant::now();
    let (code, body) = agent.ask(&["/version"]);
    assert!(code == 502 && body.contains("cannot reach the API server"), "{code}: {body}");
    assert!(since.elapsed() < Duration::from_secs(30), "{:?}", since.elapsed());
    relay.set(Link::Open);
    agent.wait("serves again", |agent| agent.ask(&["/version"]).0 == 200);

    // A restart: all connections end at once.
    let watch = agent.follow(&["-HAccept: application/json", SERVICES]);
    assert!(watch.next().is_some());
    relay.set(Link::Cut);
    while watch.next().is_some() {}
    let (code, body) = agent.ask(&["/version"]);
    assert_eq!(code, 502, "{body}");
    relay.set(Link::Open);
    agent.wait("serves again", |agent| agent.ask(&["/api/v1/services"]).0 == 200);
}
