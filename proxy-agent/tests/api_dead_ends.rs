//! An API server that cannot be reached, or that is there and says nothing: the agent notices, says so, and comes back.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod agent;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener as BlockingListener};
use std::time::{Duration, Instant};

use agent::{Agent, Own};
use isp_lab::ControlPlane;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

const SERVICES: &str = "/api/v1/services?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

/// What the way to the API server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Open,
    /// Connections are there, and nothing comes through.
    Silent,
    /// Connections are cut, and new ones too.
    Cut,
}

/// A way to the API server that can fail.
struct Relay {
    port: u16,
    way: watch::Sender<Way>,
}

impl Relay {
    async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let way = watch::Sender::new(Way::Open);
        let ways = way.clone();
        tokio::spawn(async move {
            loop {
                let (near, _) = listener.accept().await.unwrap();
                tokio::spawn(carry(near, server, ways.subscribe()));
            }
        });
        Self { port, way }
    }

    fn set(&self, way: Way) {
        self.way.send_replace(way);
    }
}

async fn carry(near: TcpStream, server: SocketAddr, mut way: watch::Receiver<Way>) {
    let far = TcpStream::connect(server).await.unwrap();
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    let (there, back) = (way.clone(), way.clone());
    tokio::select! {
        () = copy(near_in, far_out, there) => {}
        () = copy(far_in, near_out, back) => {}
        _ = way.wait_for(|way| *way == Way::Cut) => {}
    }
}

async fn copy(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut way: watch::Receiver<Way>,
) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        way.wait_for(|way| *way == Way::Open).await.unwrap();
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_way_that_falls_silent_or_breaks_is_noticed_and_requests_go_on_when_it_is_back() {
    let cluster = ControlPlane::shared().await.unwrap();
    let mut place = agent::place(cluster);
    let server = place["server"].as_str().unwrap().trim_start_matches("https://").parse().unwrap();
    let relay = Relay::start(server).await;
    // A name with two addresses, of which the one that comes first takes connections and never answers. (On a machine
    // without IPv6 it has one.)
    let _mute = BlockingListener::bind((Ipv6Addr::LOCALHOST, relay.port));
    place["server"] = format!("https://localhost:{}", relay.port).into();
    let agent = Agent::start_at(cluster, place, Own::Agent).await;
    agent.wait_for_services();

    // Silence: the open watch ends although nobody has closed a connection, and new requests are told why they fail.
    let watch = agent.follow(&["-HAccept: application/json", SERVICES]);
    assert!(watch.next().is_some());
    relay.set(Way::Silent);
    let since = Instant::now();
    while watch.next().is_some() {}
    assert!(since.elapsed() < Duration::from_secs(35), "{:?}", since.elapsed());
    let since = Instant::now();
    let (code, body) = agent.ask(&["/version"]);
    assert!(code == 502 && body.contains("cannot reach the API server"), "{code}: {body}");
    assert!(since.elapsed() < Duration::from_secs(30), "{:?}", since.elapsed());
    relay.set(Way::Open);
    agent.wait("serves again", |agent| agent.ask(&["/version"]).0 == 200);

    // A restart: all connections end at once.
    let watch = agent.follow(&["-HAccept: application/json", SERVICES]);
    assert!(watch.next().is_some());
    relay.set(Way::Cut);
    while watch.next().is_some() {}
    let (code, body) = agent.ask(&["/version"]);
    assert_eq!(code, 502, "{body}");
    relay.set(Way::Open);
    agent.wait("serves again", |agent| agent.ask(&["/api/v1/services"]).0 == 200);
}
