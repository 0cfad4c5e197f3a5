//! Clients that ask all the time, and connections that stay open, from everywhere.
//!
//! A machine without enough processors for all of this makes clients late without anybody's fault. So beside the clients of
//! each place there is one that asks the application's pod without a Service in between: what has no answer in time while
//! that one waits long too is told apart, and told.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use isp_lab::{Place, echo_program};
use nix::sys::signal::Signal;
use serde::Deserialize;

use super::harness::{EDGE, ELSEWHERE, EXTERNAL, NODE_PORT, Scenario, eventually, pod_on};
use super::process::Process;

/// A hundred requests a second.
const INTERVAL: Duration = Duration::from_millis(10);
const CONTROL_INTERVAL: Duration = Duration::from_millis(50);
const TIMEOUT: Duration = Duration::from_secs(2);
/// An answer that took this long, without a Service in between, says that the machine has no time.
const LATE: Duration = Duration::from_millis(500);

/// All of them.
pub(crate) struct Traffic {
    clients: Vec<Client>,
    held: Vec<Held>,
    began: Instant,
}

struct Client {
    name: String,
    interval: Duration,
    is_control: bool,
    process: Process,
    began: Instant,
}

struct Held {
    name: String,
    process: Process,
}

/// What became of one client's requests.
pub(crate) struct Report {
    name: String,
    is_control: bool,
    sent: usize,
    slowest: Duration,
    /// Which addresses the application saw, and how often.
    peers: BTreeMap<String, usize>,
    failures: Vec<Failure>,
    /// When requests were made that took long, since the traffic began.
    late: Vec<Duration>,
}

/// A request that failed.
struct Failure {
    at: Duration,
    error: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    seq: u32,
    elapsed_ms: f64,
    error: Option<String>,
    peer_ip: Option<String>,
}

/// A way to the application: from where, in words, and to which host, with the ports of HTTP and of raw TCP.
fn ways(scenario: &Scenario) -> Vec<(Place, String, String, [u16; 2])> {
    let edge = scenario.node_address(EDGE).to_string();
    let mut ways = vec![
        (Place::Client, "outside to the external address".to_owned(), EXTERNAL.to_owned(), [80, 81]),
        (Place::Client, format!("outside to the node port of {EDGE}"), edge, [NODE_PORT, NODE_PORT + 1]),
    ];
    for node in ELSEWHERE {
        for (place, who) in [(Place::Node(node.to_owned()), "host"), (pod_on(node), "pod")] {
            for (address, what) in [(EXTERNAL, "external address"), (&scenario.cluster_ip, "ClusterIP")] {
                let name = format!("{who} on {node} to the {what}");
                ways.push((place.clone(), name, address.to_owned(), [80, 81]));
            }
        }
    }
    ways
}

impl Traffic {
    /// Starts everything and waits until everybody has been answered.
    pub(crate) async fn start(scenario: &Scenario) -> Self {
        let began = Instant::now();
        let (mut clients, mut held) = (Vec::new(), Vec::new());
        let mut places: Vec<Place> = Vec::new();
        for (place, name, host, [http, tcp]) in ways(scenario) {
            clients.push(Client::start(scenario, &place, &name, &format!("{host}:{http}"), INTERVAL).await);
            held.push(Held::start(scenario, &place, name, &format!("{host}:{tcp}")).await);
            if !places.contains(&place) {
                places.push(place);
            }
        }
        for place in places {
            let name = format!("control: {place} to the pod");
            let target = format!("{}:8080", scenario.pod_ip);
            let control = Client::start(scenario, &place, &name, &target, CONTROL_INTERVAL).await;
            clients.push(Client { is_control: true, ..control });
        }
        let traffic = Self { clients, held, began };
        eventually("everybody is answered", async || traffic.everybody_was_answered()).await;
        traffic
    }

    fn everybody_was_answered(&self) -> bool {
        let printed = self.clients.iter().map(|client| &client.process);
        let printed = printed.chain(self.held.iter().map(|held| &held.process));
        printed.map(Process::printed).all(|lines| lines.contains('\n'))
    }

    /// Ends everything. Nothing may have failed but what a starving machine let fail, and no connection have broken.
    pub(crate) async fn expect_no_failure(self) {
        let Self { clients, held, began } = self;
        let processes = clients.iter().map(|client| &client.process);
        for process in processes.chain(held.iter().map(|held| &held.process)) {
            process.signal(Signal::SIGTERM);
        }
        let mut reports = Vec::new();
        for client in clients {
            reports.push(client.end(began).await);
        }
        println!("traffic of {:.1} s:", began.elapsed().as_secs_f64());
        for report in &reports {
            println!("  {report}");
        }
        let mut broken = Vec::new();
        for mut held in held {
            let status = held.process.end().await;
            println!("  held, {}: {}", held.name, held.process.complained().trim());
            if !status.success() {
                broken.push(format!("{}: {}", held.name, held.process.printed().trim()));
            }
        }
        let (starved, unexplained) = judge(&reports);
        println!("  not answered in time because the machine had none: {}", starved.len());
        for line in &starved {
            println!("    {line}");
        }
        assert!(unexplained.is_empty(), "failed requests:\n{}", unexplained.join("\n"));
        assert!(broken.is_empty(), "broken connections:\n{}", broken.join("\n"));
        let sent: usize = reports.iter().map(|report| report.sent).sum();
        assert!(starved.len() * 10 < sent, "a machine as busy as this proves nothing");
    }
}

/// Which failures came while a control was late as well, and which did not, in words.
fn judge(reports: &[Report]) -> (Vec<String>, Vec<String>) {
    let (controls, clients): (Vec<_>, Vec<_>) = reports.iter().partition(|report| report.is_control);
    let is_starved = |failure: &Failure| {
        let mut late = controls.iter().flat_map(|control| &control.late);
        failure.error == "timed out" && late.any(|late| late.abs_diff(failure.at) < TIMEOUT)
    };
    let (mut starved, mut unexplained) = (Vec::new(), Vec::new());
    for report in clients {
        for failure in &report.failures {
            let line = format!("{} at {:.2} s: {}", report.name, failure.at.as_secs_f64(), failure.error);
            if is_starved(failure) { &mut starved } else { &mut unexplained }.push(line);
        }
    }
    (starved, unexplained)
}

impl Client {
    async fn start(scenario: &Scenario, place: &Place, name: &str, target: &str, interval: Duration) -> Self {
        let program = echo_program().unwrap().display().to_string();
        let (every, within) = (interval.as_millis().to_string(), TIMEOUT.as_millis().to_string());
        let asks = [&program, "ask", "http", target, "--count=0", "--interval", &every, "--timeout", &within];
        let command = scenario.lab.command_in(place, &asks).await.unwrap();
        let output = scenario.file(&format!("{}.asked", name.replace([' ', ':', '/'], "-")));
        let began = Instant::now();
        let process = Process::start_in_place(command, &output);
        Self { name: name.to_owned(), interval, is_control: false, process, began }
    }

    async fn end(mut self, origin: Instant) -> Report {
        self.process.end().await;
        let (mut peers, mut failures, mut late) = (BTreeMap::new(), Vec::new(), Vec::new());
        let (mut sent, mut slowest) = (0, Duration::ZERO);
        for line in self.process.printed().lines() {
            let line: Line = serde_json::from_str(line).unwrap();
            let at = self.began - origin + self.interval * (line.seq - 1);
            let elapsed = Duration::from_secs_f64(line.elapsed_ms / 1000.0);
            sent += 1;
            slowest = slowest.max(elapsed);
            if elapsed > LATE {
                late.push(at);
            }
            if let Some(error) = line.error {
                failures.push(Failure { at, error });
            }
            if let Some(peer) = line.peer_ip {
                *peers.entry(peer).or_default() += 1;
            }
        }
        Report { name: self.name, is_control: self.is_control, sent, slowest, peers, failures, late }
    }
}

impl Held {
    async fn start(scenario: &Scenario, place: &Place, name: String, target: &str) -> Self {
        let program = echo_program().unwrap().display().to_string();
        let arguments = [program.as_str(), "hold", "tcp", target, "--interval=100"];
        let command = scenario.lab.command_in(place, &arguments).await.unwrap();
        let output = scenario.file(&format!("{}.held", name.replace(' ', "-")));
        Self { process: Process::start_in_place(command, &output), name }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, sent, failures, slowest, late, peers, .. } = self;
        write!(f, "{name}: {sent} sent, {} failed, ", failures.len())?;
        write!(f, "{} over {} ms, slowest {} ms", late.len(), LATE.as_millis(), slowest.as_millis())?;
        let seen: Vec<_> = peers.iter().map(|(peer, count)| format!("{peer} {count}x")).collect();
        write!(f, ", seen as {}", seen.join(", "))
    }
}
