//! Clients that send requests continuously, and connections that stay open, from all places.
//!
//! On a machine with too few CPUs, clients are delayed through no fault of the operator. So clients
//! and application get scheduling priority where the kernel allows it. In addition, each place has
//! a control client that sends requests directly to the application's pod, without a Service.
//! Timeouts that coincide with delays of a control client are reported separately.

mod report;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use isp_lab::{Place, echo_program};
use nix::sys::signal::Signal;

use self::report::{Report, judge};
use super::harness::{EDGE, ELSEWHERE, EXTERNAL, NODE_PORT, Scenario, eventually, pod_on};
use super::process::Process;

/// A hundred requests a second.
pub(crate) const STEADY: Duration = Duration::from_millis(10);
const CONTROL_INTERVAL: Duration = Duration::from_millis(50);
const TIMEOUT: Duration = Duration::from_secs(2);

/// All clients and open connections.
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

/// The paths to the application: the source, a description, the host, and the ports of HTTP and raw
/// TCP.
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
    /// Starts everything and waits until each client has had a response. Each client sends one
    /// request per interval.
    pub(crate) async fn start(scenario: &Scenario, interval: Duration) -> Self {
        favour_containers(scenario.lab.name());
        let began = Instant::now();
        let (mut clients, mut held) = (Vec::new(), Vec::new());
        let mut places: Vec<Place> = Vec::new();
        for (place, name, host, [http, tcp]) in ways(scenario) {
            clients.push(Client::start(scenario, &place, &name, &format!("{host}:{http}"), interval).await);
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

    /// Stops everything. Asserts that no request failed, except for lack of CPU, and that no
    /// connection broke.
    pub(crate) async fn expect_no_failure(self) {
        self.expect_no_failure_but(|_, _| false).await;
    }

    /// Like [`Self::expect_no_failure`], but tolerates requests for which `is_resent` returns true:
    /// those that were answered after their first packet was resent.
    pub(crate) async fn expect_no_failure_but(self, is_resent: impl Fn(&str, Duration) -> bool) {
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
        println!("  too late because the machine had no time: {}", starved.len());
        for line in &starved {
            println!("    {line}");
        }
        let (resent, unexplained): (Vec<_>, Vec<_>) = unexplained
            .into_iter()
            .partition(|failure| failure.resent.is_some_and(|after| is_resent(&failure.client, after)));
        println!("  sent again because kube-proxy dropped the first packet: {}", resent.len());
        let unexplained: Vec<String> = unexplained.iter().map(ToString::to_string).collect();
        assert!(unexplained.is_empty(), "failed requests:\n{}", unexplained.join("\n"));
        assert!(broken.is_empty(), "broken connections:\n{}", broken.join("\n"));
        let sent: usize = reports.iter().map(|report| report.sent).sum();
        assert!(starved.len() * 10 < sent, "a machine as busy as this proves nothing");
    }
}

/// Gives the lab's containers a larger share of the CPU, with cgroups v1 and v2.
fn favour_containers(lab: &str) {
    for (root, file, most) in
        [("/sys/fs/cgroup/cpu", "cpu.shares", "100000"), ("/sys/fs/cgroup", "cpu.weight", "10000")]
    {
        for group in ["isp-lab".to_owned(), format!("isp-lab/{lab}")] {
            // Only one of the two exists.
            let _ = fs::write(Path::new(root).join(group).join(file), most);
        }
    }
}

/// A command prefix for real-time priority, if available.
fn precedence() -> &'static [&'static str] {
    let chrt = &["chrt", "--rr", "1"];
    let tried = Command::new(chrt[0]).args(&chrt[1..]).arg("true").stderr(Stdio::null()).status();
    if tried.is_ok_and(|status| status.success()) { chrt } else { &[] }
}

/// Starts `echo` in a place.
pub(crate) async fn start_echo(
    scenario: &Scenario,
    place: &Place,
    arguments: &[&str],
    output: &str,
) -> Process {
    let program = echo_program().unwrap().display().to_string();
    let all: Vec<&str> = precedence().iter().chain(&[program.as_str()]).chain(arguments).copied().collect();
    let command = scenario.lab.command_in(place, &all).await.unwrap();
    Process::start_in_place(command, &scenario.file(&output.replace([' ', ':', '/'], "-")))
}

impl Client {
    async fn start(scenario: &Scenario, place: &Place, name: &str, target: &str, interval: Duration) -> Self {
        let (every, within) = (interval.as_millis().to_string(), TIMEOUT.as_millis().to_string());
        let asks = ["ask", "http", target, "--count=0", "--interval", &every, "--timeout", &within];
        let began = Instant::now();
        let process = start_echo(scenario, place, &asks, &format!("{name}.asked")).await;
        Self { name: name.to_owned(), interval, is_control: false, process, began }
    }

    async fn end(mut self, origin: Instant) -> Report {
        self.process.end().await;
        let began = self.began - origin;
        Report::read(self.name, self.is_control, &self.process.printed(), began, self.interval)
    }
}

impl Held {
    async fn start(scenario: &Scenario, place: &Place, name: String, target: &str) -> Self {
        let holds = ["hold", "tcp", target, "--interval=100"];
        let process = start_echo(scenario, place, &holds, &format!("{name}.held")).await;
        Self { name, process }
    }
}
