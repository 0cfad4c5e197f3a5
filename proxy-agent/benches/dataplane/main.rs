//! The data plane beside the real kube-proxy in nftables mode: `cargo xtask bench dataplane`.
//!
//! One API server with its etcd on loopback has the Services. The agent, told to serve all of them,
//! and kube-proxy run one after the other, each in a network namespace of its own. Commits are
//! observed by the kernel's notifications. Their own durations are those of their metrics. When a
//! program has ended, its rules stay in its namespace; connections are then set up in all
//! namespaces in turn. Needs root, `ip` and `nft`. `ISP_BENCH_SERVICES` limits the number of
//! Services. The figures are for people; nothing asserts on them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark fails as a test does"
)]

mod cluster;
mod connections;
mod figures;
mod namespace;
mod notifications;
mod proxy;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use isp_lab::ControlPlane;
use isp_testkit::{agent, control_plane};
use tokio::time::{sleep, timeout};

use crate::cluster::{Cluster, ENDPOINTS, SERVER_PORT};
use crate::figures::{Better, Line, Spread, milliseconds};
use crate::namespace::Namespace;
use crate::notifications::Commits;
use crate::proxy::{Proxy, Running};

/// kube-proxy is given up after this time.
const PATIENCE: Duration = Duration::from_mins(15);
const CHANGES: usize = 24;
const ADDITIONS: usize = 6;
/// The pauses after changes: a change may come at any time after a sync.
const PAUSES: [u64; 6] = [300, 500, 700, 900, 1200, 1500];
const ONE_COMMIT: Duration = Duration::from_mins(2);
/// How long one round of connections lasts, and how many there are. Short rounds in turn, so that
/// the other load of the machine hits all programs alike.
const ROUND: Duration = Duration::from_millis(250);
const ROUNDS: usize = 30;

/// One size of the cluster.
#[derive(Debug, Clone, Copy)]
struct Size {
    services: u32,
    endpoints: u32,
    /// Whether everything is measured, or only how fast connections are set up.
    whole: bool,
}

const SIZES: [Size; 4] = [
    Size { services: 10, endpoints: 2, whole: false },
    Size { services: 1000, endpoints: 2, whole: false },
    Size { services: 5000, endpoints: 2, whole: true },
    Size { services: 50_000, endpoints: 5, whole: true },
];

/// The figures of one program.
#[derive(Debug, Default, Clone, Copy)]
struct Figures {
    start: Option<f64>,
    first_sync: Option<f64>,
    change_sync: Option<f64>,
    change: Option<Spread>,
    change_from_event: Option<Spread>,
    addition: Option<Spread>,
    resident: Option<f64>,
    most_resident: Option<f64>,
    kernel_memory: Option<f64>,
    rate: Option<f64>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let limit = std::env::var("ISP_BENCH_SERVICES").ok().map(|limit| limit.parse::<u32>().unwrap());
    let control_plane = ControlPlane::start().await.unwrap();
    control_plane::install_crds(&control_plane).await;
    let mut cluster = Cluster::new(control_plane.client().unwrap()).await;
    for size in sizes(limit) {
        let start = Instant::now();
        cluster.grow(&control_plane, size.services, size.endpoints).await;
        eprintln!("bench: {size:?}, made in {:.0} s", start.elapsed().as_secs_f64());
        let table = measure(&control_plane, &mut cluster, size).await;
        println!("\ndataplane: {} Services x {} endpoints\n", size.services, size.endpoints);
        println!("{}", Line::header());
        for line in table {
            println!("{}", line.text());
        }
    }
}

/// With a limit, the largest size that is left is measured as a whole.
fn sizes(limit: Option<u32>) -> Vec<Size> {
    let Some(limit) = limit else { return SIZES.to_vec() };
    let mut sizes: Vec<Size> = SIZES.into_iter().filter(|size| size.services < limit).collect();
    let endpoints = if limit > 5000 { 5 } else { 2 };
    sizes.push(Size { services: limit, endpoints, whole: true });
    sizes
}

async fn measure(control_plane: &ControlPlane, cluster: &mut Cluster, size: Size) -> Vec<Line> {
    let mut all = [Figures::default(); 3];
    let mut namespaces = Vec::new();
    for (place, proxy) in Proxy::ALL.into_iter().enumerate() {
        if !size.whole && proxy == Proxy::KubeProxy("1ms") {
            continue;
        }
        let namespace = Namespace::new(ENDPOINTS);
        connections::serve(&namespace, SERVER_PORT);
        if let Some(figures) = measure_one(control_plane, cluster, size, proxy, &namespace).await {
            all[place] = figures;
            namespaces.push((place, namespace));
        }
    }
    rates(&namespaces, &cluster.targets, &mut all);
    lines(size, &all)
}

/// Measures one program from its start to its end. None if it does not finish in time.
async fn measure_one(
    control_plane: &ControlPlane,
    cluster: &mut Cluster,
    size: Size,
    proxy: Proxy,
    namespace: &Namespace,
) -> Option<Figures> {
    eprintln!("bench: {proxy:?}");
    let directory = tempfile::tempdir().unwrap();
    let server = agent::api_server(control_plane)["server"].as_str().unwrap().to_owned();
    let relay = namespace.relay(server.trim_start_matches("https://").parse().unwrap());
    let start = Instant::now();
    let mut running = Running::start(proxy, namespace, control_plane, directory.path());
    let first = running.first_sync(PATIENCE).await?;
    let mut figures = Figures {
        start: Some(milliseconds(start.elapsed())),
        first_sync: Some(milliseconds(first.time)),
        ..Figures::default()
    };
    eprintln!("bench: {proxy:?}: {figures:?}");
    sleep(Duration::from_secs(3)).await;
    if size.whole {
        changes(cluster, &running, namespace, &mut figures).await;
        additions(cluster, namespace, &mut figures).await;
    }
    let (resident, most) = running.resident();
    (figures.resident, figures.most_resident) = (Some(resident), Some(most));
    figures.kernel_memory = running.end().await;
    relay.abort();
    eprintln!("bench: {proxy:?}: {figures:?}");
    Some(figures)
}

/// One endpoint is replaced, again and again.
async fn changes(cluster: &mut Cluster, running: &Running, namespace: &Namespace, figures: &mut Figures) {
    let mut commits = Commits::of(namespace);
    let mut events = cluster.watch_changes().await;
    let before = running.syncs().unwrap();
    let (mut from_request, mut from_event) = (Vec::new(), Vec::new());
    for pause in PAUSES.into_iter().cycle().take(CHANGES) {
        sleep(Duration::from_millis(pause)).await;
        commits.drain();
        while events.try_recv().is_ok() {}
        let start = Instant::now();
        let (commit, event, ()) =
            tokio::join!(commits.next(ONE_COMMIT), timeout(ONE_COMMIT, events.recv()), cluster.change());
        let commit = commit.unwrap_or_else(|| panic!("nothing is committed: {}", running.log()));
        let event = event.unwrap().unwrap();
        from_request.push(milliseconds(commit - start));
        // The program may get the event before this one.
        from_event.push(milliseconds(commit.saturating_duration_since(event)));
    }
    sleep(Duration::from_secs(2)).await;
    let after = running.syncs().unwrap();
    figures.change = Spread::of(from_request);
    figures.change_from_event = Spread::of(from_event);
    let syncs = after.count - before.count;
    figures.change_sync = Some(milliseconds(after.time.saturating_sub(before.time)) / syncs);
}

/// Services are added, one at a time. Their slices are there already.
async fn additions(cluster: &mut Cluster, namespace: &Namespace, figures: &mut Figures) {
    let mut commits = Commits::of(namespace);
    let mut times = Vec::new();
    for pause in PAUSES.into_iter().cycle().take(ADDITIONS) {
        cluster.prepare_one().await;
        sleep(Duration::from_millis(1500 + pause)).await;
        commits.drain();
        let start = Instant::now();
        let (commit, ()) = tokio::join!(commits.next(ONE_COMMIT), cluster.add_one());
        times.push(milliseconds(commit.expect("a commit") - start));
    }
    figures.addition = Spread::of(times);
}

/// Connections through the rules that the programs left behind, in turn.
fn rates(namespaces: &[(usize, Namespace)], targets: &[SocketAddr], figures: &mut [Figures; 3]) {
    // Services that were added after a program had ended are not in its rules.
    let targets = &targets[..targets.len().saturating_sub(ADDITIONS * Proxy::ALL.len()).max(10)];
    let mut found = vec![Vec::new(); namespaces.len()];
    eprintln!("bench: connections");
    for round in 0..ROUNDS {
        for place in 0..namespaces.len() {
            let place = (place + round) % namespaces.len();
            found[place].push(connections::rate(&namespaces[place].1, targets, ROUND));
        }
    }
    for ((place, _), found) in namespaces.iter().zip(found) {
        figures[*place].rate = Spread::of(found).map(|spread| spread.median);
    }
}

fn lines(size: Size, all: &[Figures; 3]) -> Vec<Line> {
    let line = |what: &str, unit, wanted, value: &dyn Fn(&Figures) -> Option<f64>| Line {
        what: what.to_owned(),
        values: [value(&all[0]), value(&all[1]), value(&all[2])],
        unit,
        wanted,
    };
    let less = |ratio| Some((ratio, Better::Less));
    let median = |spread: Option<Spread>| spread.map(|spread| spread.median);
    let most = |spread: Option<Spread>| spread.map(|spread| spread.most);
    let mut lines = vec![
        line("from the start to the first sync", "ms", None, &|one| one.start),
        line("first sync, by its own account", "ms", less(1.0 / 30.0), &|one| one.first_sync),
    ];
    if size.whole {
        lines.extend([
            line("one endpoint, by its own account (mean)", "ms", less(0.01), &|one| one.change_sync),
            line("  from the request to the commit (median)", "ms", None, &|one| median(one.change)),
            line("  from the event to the commit (median)", "ms", None, &|one| median(one.change_from_event)),
            line("  from the event to the commit (most)", "ms", None, &|one| most(one.change_from_event)),
            line("a Service added, request to commit (median)", "ms", None, &|one| median(one.addition)),
        ]);
    }
    lines.extend([
        line("resident memory", "MB", less(0.2), &|one| one.resident),
        line("  at most", "MB", None, &|one| one.most_resident),
        line("memory of the kernel for the rules", "MB", None, &|one| one.kernel_memory),
        line("connections set up", "/s", Some((1.0, Better::More)), &|one| one.rate),
    ]);
    lines
}
