//! Measures the cost of the agent: the same reads, direct and through the agent, side by side in
//! one run on a real API server. It prints figures beside their budgets and asserts none, because
//! they depend on the machine as well.
//!
//! `ISP_BENCH_SERVICES=200` is a quick run at a smaller size.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark fails by panicking")]

mod client;
mod cluster;
mod figures;

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use client::{Connection, Encoding, End};
use cluster::Kind;
use figures::{Line, Sorted, Usage, milliseconds};
use isp_lab::ControlPlane;
use isp_testkit::agent::{self, Agent};
use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const SERVICES: usize = 5_000;
/// The number of events in each encoding.
const EVENTS: usize = 1_000;
/// The benchmark reopens the watches after this many events, the other one first.
const EVENTS_OF_A_ROUND: usize = 200;
const LISTS: usize = 24;
/// The pause that keeps events apart, as most are.
const BETWEEN_EVENTS: Duration = Duration::from_millis(2);

const SERVICES_PATH: &str = "/api/v1/services?labelSelector=%21service.kubernetes.io%2Fservice-proxy-name&fieldSelector=spec.clusterIP%21%3DNone";
const SLICES_PATH: &str =
    "/apis/discovery.k8s.io/v1/endpointslices?labelSelector=%21service.kubernetes.io%2Fheadless";
const FROM_START: &str = "allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=600&watch=true";

const MOST_DELAY: f64 = 1.0;
const MOST_TIMES: f64 = 1.3;
const MOST_MEMORY: f64 = 15.0;

/// The program to measure, if it is not the one that cargo built with the benchmark.
fn program() -> OsString {
    std::env::var_os("ISP_BENCH_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_proxy-agent").into())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let services = std::env::var("ISP_BENCH_SERVICES").map_or(SERVICES, |count| count.parse().unwrap());
    let events = EVENTS.min(services * 2);
    let cluster = ControlPlane::start().await.unwrap();
    let client = cluster.client().unwrap();
    agent::install(&cluster).await;
    eprintln!("bench: making {services} Services with two endpoints each");
    cluster::fill(&client, services).await;

    let (narrowed, hidden) =
        (cluster::count(services, Kind::Narrowed), cluster::count(services, Kind::Hidden));
    let mut table = Vec::new();
    for view in [View::Empty, View::Narrowing] {
        if view == View::Narrowing {
            cluster::preserve(&client).await;
        }
        eprintln!("bench: {view:?}");
        let seen = if view == View::Narrowing { services - hidden } else { services };
        table.push(Line::heading(match view {
            View::Empty => "nothing is hidden".to_owned(),
            View::Narrowing => format!("{narrowed} Services ClusterOnly, {hidden} Hidden"),
        }));
        table.extend(measure(&cluster, &client, Size { services, seen, events }).await);
    }
    cluster::forget(&client).await;
    println!(
        "\nfilter: {services} Services x 2 endpoints, {events} events, {LISTS} lists; budgets are for 5000 x 2\n"
    );
    for line in table {
        println!("{line}");
    }
}

/// The view of the agent's node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum View {
    Empty,
    Narrowing,
}

#[derive(Debug, Clone, Copy)]
struct Size {
    services: usize,
    /// Through the agent.
    seen: usize,
    events: usize,
}

/// Measures one agent from its start to its end.
async fn measure(cluster: &ControlPlane, client: &Client, size: Size) -> Vec<Line> {
    let agent = Agent::of(program()).start(cluster).await;
    agent.wait_for_services();
    let api_server = agent::api_server(cluster);
    let authority: k8s_openapi::ByteString =
        serde_json::from_value(api_server["certificate-authority-data"].clone()).unwrap();
    let server = api_server["server"].as_str().unwrap().trim_start_matches("https://").parse().unwrap();
    let direct = End::new(server, None, &authority.0, None, agent.kube_proxy_token());
    let file = |name: &str| std::fs::read(agent.file(name)).unwrap();
    let certificate = (file("client.crt"), file("client.key"));
    let name = Some(agent.name());
    let through = End::new(agent.address, name, &file("ca.crt"), Some(certificate), agent.kube_proxy_token());

    let mut lines = Vec::new();
    let mut memory = vec![("after its start", Usage::of(agent.process()))];
    lines.extend(lists(&direct, &through, size).await);
    memory.push(("after lists", Usage::of(agent.process())));
    let (delays, watches) = delays(&agent, client, &direct, &through, size).await;
    lines.splice(0..0, delays);
    memory.push(("after events, with kube-proxy's watches", Usage::of(agent.process())));
    drop(watches);
    for (when, usage) in memory {
        let Usage { resident, highest, own, .. } = usage;
        let kept = (format!("{MOST_MEMORY:.0} MB"), resident <= MOST_MEMORY);
        lines.push(Line::alone(
            format!("memory {when} (own {own:.1}, most {highest:.1})"),
            format!("{resident:.1} MB"),
            Some(kept),
        ));
    }
    lines
}

/// Measures the time to read everything, with each kind of read that a kube-proxy uses.
async fn lists(direct: &End, through: &End, size: Size) -> Vec<Line> {
    let (mut direct, mut through) = (direct.connect().await, through.connect().await);
    let from_cache = format!("{SERVICES_PATH}&limit=500&resourceVersion=0");
    let in_pages = format!("{SERVICES_PATH}&limit=500");
    let watch = format!("{SERVICES_PATH}&{FROM_START}");
    let slices = format!("{SLICES_PATH}&{FROM_START}");
    let mut lines = Vec::new();
    for (what, path) in [("list", &from_cache), ("list in pages of 500", &in_pages)] {
        for encoding in Encoding::ALL {
            eprintln!("bench: {what}, {encoding}");
            let (mut times, mut found) = (Pairs::default(), Vec::new());
            for round in 0..LISTS {
                let mut read = async |connection: &mut Connection| {
                    let start = Instant::now();
                    found.push(connection.list(path, encoding).await);
                    start.elapsed()
                };
                times.add(round, &mut direct, &mut through, &mut read).await;
            }
            let (bytes, pages) = found[0];
            lines.push(times.line(&format!("{what}, {encoding} ({} kB in {pages})", bytes / 1000)));
        }
    }
    for (what, path, seen) in
        [("WatchList", &watch, size.seen), ("WatchList of EndpointSlices", &slices, size.services)]
    {
        for encoding in Encoding::ALL {
            eprintln!("bench: {what}, {encoding}");
            let mut times = Pairs::default();
            for round in 0..LISTS {
                let mut counts = Vec::new();
                let mut read = async |connection: &mut Connection| {
                    let (start, mut objects) = (Instant::now(), 0);
                    let count = |event: &[u8], _| {
                        objects += 1;
                        if is_end(event) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                    };
                    connection.watch(path, encoding, count).await;
                    counts.push(objects - 1);
                    start.elapsed()
                };
                times.add(round, &mut direct, &mut through, &mut read).await;
                // The additional one is the API server's own Service.
                assert!(
                    counts.iter().min().is_some_and(|least| (seen..=seen + 1).contains(least)),
                    "{counts:?}"
                );
            }
            lines.push(times.line(&format!("{what}, {encoding}")));
        }
    }
    lines
}

/// Says whether this bookmark ends the initial events.
fn is_end(event: &[u8]) -> bool {
    client::holds(event, b"k8s.io/initial-events-end")
}

/// The times of one operation, direct and through the agent.
#[derive(Default)]
struct Pairs {
    direct: Vec<Duration>,
    through: Vec<Duration>,
}

impl Pairs {
    /// Runs it once on each side, with alternating order.
    async fn add(
        &mut self,
        round: usize,
        direct: &mut Connection,
        through: &mut Connection,
        read: &mut impl AsyncFnMut(&mut Connection) -> Duration,
    ) {
        if round.is_multiple_of(2) {
            self.direct.push(read(direct).await);
            self.through.push(read(through).await);
        } else {
            self.through.push(read(through).await);
            self.direct.push(read(direct).await);
        }
    }

    fn delays(&self, what: &str) -> [Line; 2] {
        let pairs = self.direct.iter().zip(&self.through);
        let added = Sorted::of(pairs.map(|(here, there)| milliseconds(*there) - milliseconds(*here)));
        let (here, there) = (Sorted::durations(&self.direct), Sorted::durations(&self.through));
        let line = |name: &str, part: f64, budget: Option<(String, bool)>| Line {
            what: format!("watch event, {what}, {name}"),
            direct: format!("{:.2} ms", here.quantile(part)),
            through: format!("{:.2} ms", there.quantile(part)),
            difference: format!("{:+.2} ms", added.quantile(part)),
            budget,
        };
        let kept = (format!("+{MOST_DELAY:.0} ms"), added.median() <= MOST_DELAY);
        [line("median", 0.5, Some(kept)), line("99 of 100", 0.99, None)]
    }

    fn line(&self, what: &str) -> Line {
        let (direct, through) = (Sorted::durations(&self.direct), Sorted::durations(&self.through));
        Line::times(what, direct.median(), through.median(), Some(MOST_TIMES))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Direct,
    Through,
}

type Receipt = (Side, usize, Instant);

/// Opens the watches of a kube-proxy on one connection. It passes on events of Services, and
/// discards the rest.
async fn follow(
    (side, end): (Side, &End),
    encoding: Encoding,
    receipts: &mpsc::UnboundedSender<Receipt>,
    watches: &mut JoinSet<()>,
) {
    let connection = end.connect().await;
    let (started, mut starts) = mpsc::unbounded_channel();
    let paths = [
        format!("{SERVICES_PATH}&{FROM_START}"),
        format!("{SLICES_PATH}&{FROM_START}"),
        format!("/apis/networking.k8s.io/v1/servicecidrs?{FROM_START}"),
        format!("/api/v1/nodes?fieldSelector=metadata.name%3D{}&{FROM_START}", agent::NODE),
    ];
    let count = paths.len();
    for path in paths {
        let (mut connection, receipts, started) = (connection.clone(), receipts.clone(), started.clone());
        watches.spawn(async move {
            let tell = |event: &[u8], now| {
                if is_end(event) {
                    let _ = started.send(());
                }
                if let Some(sequence) = cluster::sequence(event) {
                    let _ = receipts.send((side, sequence, now));
                }
                ControlFlow::Continue(())
            };
            connection.watch(&path, encoding, tell).await;
        });
    }
    for _ in 0..count {
        starts.recv().await.unwrap();
    }
}

/// Measures the delay of each event on both sides, and the agent's CPU time per thousand events.
async fn delays(
    agent: &Agent,
    client: &Client,
    direct: &End,
    through: &End,
    size: Size,
) -> (Vec<Line>, JoinSet<()>) {
    let visible: Vec<usize> = (0..size.services).filter(|index| Kind::of(*index) != Kind::Hidden).collect();
    let mut watches = JoinSet::new();
    let (mut lines, mut spent, mut sequence) = (Vec::new(), Duration::ZERO, now_in_seconds());
    for encoding in Encoding::ALL {
        let mut times = Pairs::default();
        for round in 0..size.events / EVENTS_OF_A_ROUND {
            eprintln!("bench: events, {encoding}, round {round}");
            let (receipts, mut received) = mpsc::unbounded_channel();
            let mut order = [(Side::Direct, direct), (Side::Through, through)];
            if round % 2 == 1 {
                order.reverse();
            }
            watches = JoinSet::new();
            for end in order {
                follow(end, encoding, &receipts, &mut watches).await;
            }
            let before = Usage::of(agent.process()).processor;
            for event in 0..EVENTS_OF_A_ROUND {
                sequence += 1;
                let index = visible[(round * EVENTS_OF_A_ROUND + event) * 7 % visible.len()];
                let start = Instant::now();
                let (mut here, mut there) = (None, None);
                let wait = async {
                    while here.is_none() || there.is_none() {
                        match received.recv().await.unwrap() {
                            (Side::Direct, found, at) if found == sequence => here = Some(at - start),
                            (Side::Through, found, at) if found == sequence => there = Some(at - start),
                            _ => {}
                        }
                    }
                };
                tokio::join!(cluster::update(client, index, sequence), wait);
                times.direct.extend(here);
                times.through.extend(there);
                tokio::time::sleep(BETWEEN_EVENTS).await;
            }
            spent += Usage::of(agent.process()).processor.saturating_sub(before);
        }
        lines.extend(times.delays(&encoding.to_string()));
    }
    let events = f64::from(u32::try_from(2 * size.events).unwrap());
    let processor = milliseconds(spent) / events * 1000.0;
    lines.push(Line::alone("processor for 1,000 events", format!("{processor:.0} ms"), None));
    (lines, watches)
}

/// Returns a number above those of the events of earlier runs.
fn now_in_seconds() -> usize {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    usize::try_from(now.as_secs() % 10_000_000).unwrap() * 10
}
