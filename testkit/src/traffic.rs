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

use isp_lab::{Lab, Place, echo_program};
use nix::sys::signal::Signal;

use self::report::{Report, Unexplained, judge};
use crate::process::Process;
use crate::wait::until;
use crate::web_lab::{EDGE, ELSEWHERE, EXTERNAL, NODE_PORT, WebLab, pod_on};

/// A hundred requests a second.
pub const STEADY: Duration = Duration::from_millis(10);
const CONTROL_INTERVAL: Duration = Duration::from_millis(50);
const TIMEOUT: Duration = Duration::from_secs(2);

/// All clients and open connections.
pub struct Traffic {
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
fn ways(web: &WebLab) -> Vec<(Place, String, String, [u16; 2])> {
    let edge = web.node_address(EDGE).to_string();
    let mut ways = vec![
        (Place::Client, "outside to the external address".to_owned(), EXTERNAL.to_owned(), [80, 81]),
        (Place::Client, format!("outside to the node port of {EDGE}"), edge, [NODE_PORT, NODE_PORT + 1]),
    ];
    for node in ELSEWHERE {
        for (place, who) in [(Place::Node(node.to_owned()), "host"), (pod_on(node), "pod")] {
            for (address, what) in [(EXTERNAL, "external address"), (&web.cluster_ip, "ClusterIP")] {
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
    pub async fn start(web: &WebLab, interval: Duration) -> Self {
        let mut traffic = Self::start_controls(web).await;
        for (place, name, host, [http, tcp]) in ways(web) {
            traffic
                .clients
                .push(Client::start(web, &place, &name, &format!("{host}:{http}"), interval).await);
            traffic.held.push(Held::start(web, &place, name, &format!("{host}:{tcp}")).await);
        }
        traffic.wait_until_answered().await;
        traffic
    }

    /// Starts only the control clients.
    pub async fn start_controls(web: &WebLab) -> Self {
        favour_containers();
        let began = Instant::now();
        let mut clients = Vec::new();
        let mut places: Vec<Place> = Vec::new();
        for (place, ..) in ways(web) {
            if places.contains(&place) {
                continue;
            }
            let name = format!("control: {place} to the pod");
            let target = format!("{}:8080", web.pod_ip);
            let control = Client::start(web, &place, &name, &target, CONTROL_INTERVAL).await;
            clients.push(Client { is_control: true, ..control });
            places.push(place);
        }
        let traffic = Self { clients, held: Vec::new(), began };
        traffic.wait_until_answered().await;
        traffic
    }

    /// Adds a client that sends HTTP requests to a host and port, and waits for its first response.
    pub async fn add(&mut self, web: &WebLab, place: &Place, name: &str, target: &str, interval: Duration) {
        self.clients.push(Client::start(web, place, name, target, interval).await);
        self.wait_until_answered().await;
    }

    async fn wait_until_answered(&self) {
        until("each client has an answer", async || self.all_were_answered()).await;
    }

    /// Fails with the names of the clients that have no answer yet.
    fn all_were_answered(&self) -> Result<(), Vec<&str>> {
        let clients = self.clients.iter().map(|client| (client.name.as_str(), &client.process));
        let held = self.held.iter().map(|held| (held.name.as_str(), &held.process));
        let waiting = clients.chain(held).filter(|(_, process)| !process.printed().contains('\n'));
        let waiting: Vec<&str> = waiting.map(|(name, _)| name).collect();
        if waiting.is_empty() { Ok(()) } else { Err(waiting) }
    }

    /// Stops everything. Asserts that no request failed, except for lack of CPU, and that no
    /// connection broke.
    pub async fn expect_no_failure(self) {
        self.expect_no_failure_but(|_, _| false).await;
    }

    /// Like [`Self::expect_no_failure`], but tolerates requests for which `is_resent` returns true:
    /// those that were answered after their first packet was resent.
    pub async fn expect_no_failure_but(self, is_resent: impl Fn(&str, Duration) -> bool) {
        let (sent, starved, unexplained) = self.stop().await;
        let (resent, unexplained): (Vec<_>, Vec<_>) = unexplained
            .into_iter()
            .partition(|failure| failure.resent.is_some_and(|after| is_resent(&failure.client, after)));
        println!("  sent again because kube-proxy dropped the first packet: {}", resent.len());
        let unexplained: Vec<String> = unexplained.iter().map(ToString::to_string).collect();
        assert!(unexplained.is_empty(), "failed requests:\n{}", unexplained.join("\n"));
        assert!(starved * 10 < sent, "a machine as busy as this proves nothing");
    }

    /// Stops everything. Asserts that no connection broke, and returns for each client whose
    /// requests failed, except for lack of CPU, the time from the first such request to the one
    /// after the last.
    pub async fn outages(self) -> Vec<(String, Duration)> {
        let (sent, starved, unexplained) = self.stop().await;
        assert!(starved * 10 < sent, "a machine as busy as this proves nothing");
        for failure in &unexplained {
            println!("  {failure}");
        }
        report::outages(&unexplained)
    }

    /// Stops everything, prints what happened, and asserts that no connection broke. Returns the
    /// number of requests, the number of those that were late for lack of CPU, and all other
    /// failures.
    async fn stop(self) -> (usize, usize, Vec<Unexplained>) {
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
        assert!(broken.is_empty(), "broken connections:\n{}", broken.join("\n"));
        let sent: usize = reports.iter().map(|report| report.sent).sum();
        (sent, starved.len(), unexplained)
    }
}

/// Gives the containers of all labs a larger share of the CPU, with cgroups v1 and v2. The labs'
/// shares are equal: a lab with more would starve the others for seconds.
fn favour_containers() {
    for file in ["/sys/fs/cgroup/cpu/isp-lab/cpu.shares", "/sys/fs/cgroup/isp-lab/cpu.weight"] {
        // As much as so many processes together. Only one of the two files exists.
        let share = if file.ends_with("shares") { 16 * 1024 } else { 16 * 100 };
        let _ = fs::write(file, share.to_string());
    }
}

/// A command prefix for real-time priority, if available.
pub(crate) fn precedence() -> &'static [&'static str] {
    let chrt = &["chrt", "--rr", "1"];
    let tried = Command::new(chrt[0]).args(&chrt[1..]).arg("true").stderr(Stdio::null()).status();
    if tried.is_ok_and(|status| status.success()) { chrt } else { &[] }
}

/// Starts `echo` in a place, with its output in this file.
pub async fn start_echo(lab: &Lab, place: &Place, arguments: &[&str], output: &Path) -> Process {
    let program = echo_program().unwrap().display().to_string();
    let all: Vec<&str> = precedence().iter().chain(&[program.as_str()]).chain(arguments).copied().collect();
    let command = lab.command_in(place, &all).await.unwrap();
    Process::start_in_place(command, output)
}

impl Client {
    async fn start(web: &WebLab, place: &Place, name: &str, target: &str, interval: Duration) -> Self {
        let (every, within) = (interval.as_millis().to_string(), TIMEOUT.as_millis().to_string());
        let asks = ["ask", "http", target, "--count=0", "--interval", &every, "--timeout", &within];
        let began = Instant::now();
        let process = start_echo(&web.lab, place, &asks, &web.file(&format!("{name}.asked"))).await;
        Self { name: name.to_owned(), interval, is_control: false, process, began }
    }

    async fn end(mut self, origin: Instant) -> Report {
        self.process.end().await;
        let began = self.began - origin;
        Report::read(self.name, self.is_control, &self.process.printed(), began, self.interval)
    }
}

impl Held {
    async fn start(web: &WebLab, place: &Place, name: String, target: &str) -> Self {
        let holds = ["hold", "tcp", target, "--interval=100"];
        let process = start_echo(&web.lab, place, &holds, &web.file(&format!("{name}.held"))).await;
        Self { name, process }
    }
}
