//! What the webhook costs: the same review of the same pod, answered by the webhook and by Istio's injector, side by side in one run,
//! each on one core, the generator on another. It prints figures beside their budgets and asserts none of them, because they are the
//! machine's as much as the webhook's; but every answer has to be right. On a machine that does something else, too, both are kept
//! waiting for their core, and the table says how long: then the rarest times are the machine's alone. The one that is
//! not asked is held meanwhile; while times are taken, so is everything else that the bench has started.
//!
//! `ISP_BENCH_SECONDS=9` gives a quick look.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark that cannot go on has nothing better to do"
)]

mod ask;
mod figures;
#[path = "../../tests/api_certificates/harness.rs"]
mod harness;
mod load;
mod quiet;
mod review;
mod server;

use std::fs;
use std::process::Command;
use std::time::Duration;

use figures::{Budget, Line};
use harness::Cluster;
use isp_lab::provision;
use load::{Cores, Generator, Load, Pace};
use quiet::{Quiet, started};
use serde_json::json;
use server::Server;

/// How long each end is asked in each way, in all rounds together.
const SECONDS: u64 = 30;
/// The two ends take turns, so that what else the machine does is spread over both.
const ROUNDS: u32 = 3;

const CONNECTIONS: u32 = 8;
const MANY_CONNECTIONS: u32 = 256;
/// What both can do, one by one: several connections would send at almost the same time, and then wait for each other.
const SLOW: Pace = Pace { connections: 1, per_second: Some(40) };
/// A large cluster in which everything is restarted at once.
const FAST: Pace = Pace { connections: CONNECTIONS, per_second: Some(1_000) };
/// The same from many API servers, each with its connection.
const MANY: Pace = Pace { connections: MANY_CONNECTIONS, per_second: Some(1_000) };
const FULL: Pace = Pace { connections: MANY_CONNECTIONS, per_second: None };

const P50: Budget = Budget::at_most(0.3, "0.3 ms");
const P99: Budget = Budget::at_most(2.0, "2 ms");
const REVIEWS: Budget = Budget::at_least(5_000.0, "5,000/s");
const MEMORY: Budget = Budget::at_most(20.0, "20 MB");

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let seconds = std::env::var("ISP_BENCH_SECONDS").map_or(SECONDS, |seconds| seconds.parse().unwrap());
    let duration = Duration::from_secs(seconds) / ROUNDS;
    let program = provision::load_generator(|line| eprintln!("{line}")).unwrap();
    let cluster = Cluster::start().await;
    prepare(&cluster).await;
    let cores = Cores::choose();
    let (webhook, istiod) = (Server::webhook(&cluster, &cores).await, Server::istiod(&cluster, &cores).await);

    let directory = tempfile::tempdir().unwrap();
    let body = directory.path().join("review.json");
    fs::write(&body, review::review().to_string()).unwrap();
    let size = fs::metadata(&body).unwrap().len();
    let generator = Generator { program, body, log: directory.path().join("log"), core: cores.generator };

    let both = [&webhook, &istiod];
    let slow = in_turns(&generator, both, both, SLOW, duration);
    let [fast] = in_turns(&generator, [&webhook], both, FAST, duration);
    // Before the webhook has ever had more to do: what it needed then it may keep.
    let [many] = in_turns(&generator, [&webhook], both, MANY, duration);
    let full = in_turns(&generator, both, both, FULL, duration);
    for server in both {
        assert!(server.answers_rightly().await, "{} still answers as it should", server.name);
    }

    println!(
        "\nwebhook: a review of {size} bytes, {seconds} s each in {ROUNDS} rounds; {}; load of the machine {}\n",
        version(&generator),
        load_of_machine()
    );
    for line in table(&slow, &fast, &many, &full) {
        println!("{line}");
    }
}

/// A namespace whose pods get sidecars, and an object that asks for their mode.
async fn prepare(cluster: &Cluster) {
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": review::NAMESPACE, "labels": {"istio-injection": "enabled", "team": "shop"}},
        },
        {
            "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourcePreserve", "metadata": {"name": "shop"},
            "spec": {
                "ingressNodes": {"selector": {"matchLabels": {"node-role.kubernetes.io/ingress": ""}}},
                "services": [{"namespace": "istio-system", "name": "istio-ingressgateway"}],
                "sidecars": [{"namespaceSelector": {"matchLabels": {"team": "shop"}}}],
            },
        },
    ]});
    server::apply(cluster, &objects.to_string()).await;
}

fn in_turns<const N: usize>(
    generator: &Generator,
    measured: [&Server; N],
    servers: [&Server; 2],
    pace: Pace,
    duration: Duration,
) -> [Load; N] {
    let mut loads = [const { Load::NONE }; N];
    for round in 1..=ROUNDS {
        for (server, load) in measured.iter().zip(&mut loads) {
            eprintln!("bench: {}, {pace}, round {round} of {ROUNDS}", server.name);
            // An API server takes from both cores what others wait for. But without one they would look for it, and need memory for that.
            let takes_times = pace.connections < MANY_CONNECTIONS;
            let others = if takes_times { started() } else { servers.map(Server::process).to_vec() };
            let _quiet = Quiet::around(server.process(), &others);
            load.add(generator.run(server, pace, duration));
        }
    }
    loads
}

fn table(slow: &[Load; 2], fast: &Load, many: &Load, full: &[Load; 2]) -> Vec<Line> {
    let lower = |what: &str, [webhook, istiod]: &[Load; 2], unit, of: &dyn Fn(&Load) -> f64| {
        Line::lower(format!("  {what}"), of(webhook), Some(of(istiod)), unit)
    };
    let [webhook, istiod] = full;
    vec![
        Line::heading(SLOW.to_string()),
        lower("p50", slow, "ms", &|load| load.quantile(0.5)),
        lower("p99", slow, "ms", &|load| load.quantile(0.99)),
        lower("p99 of half of the seconds", slow, "ms", &Load::p99_of_a_second),
        lower("kept waiting for its core", slow, "%", &|load| load.watched.kept_waiting()).without_ratio(),
        Line::heading(FAST.to_string()),
        Line::lower("  p50", fast.quantile(0.5), None, "ms").budget(P50),
        Line::lower("  p99", fast.quantile(0.99), None, "ms").budget(P99),
        Line::lower("  p99 of half of the seconds", fast.p99_of_a_second(), None, "ms").budget(P99),
        Line::lower("  kept waiting for its core", fast.watched.kept_waiting(), None, "%"),
        Line::lower("  taken from all by the machine below", fast.watched.stolen(), None, "%"),
        Line::heading(MANY.to_string()),
        Line::lower("  memory", many.memory, None, "MB").budget(MEMORY),
        Line::lower("  of it no file's", many.own_memory, None, "MB"),
        Line::heading(FULL.to_string()),
        Line::higher("  reviews", webhook.per_second(), Some(istiod.per_second()), "/s").budget(REVIEWS),
        lower("p50", full, "ms", &|load| load.quantile(0.5)),
        lower("p99", full, "ms", &|load| load.quantile(0.99)),
        lower("processor for a review", full, "ms", &|load| load.watched.processor()),
        lower("core in use", full, "%", &|load| load.watched.busy()).without_ratio(),
        lower("kept waiting for its core", full, "%", &|load| load.watched.kept_waiting()).without_ratio(),
        lower("memory", full, "MB", &|load| load.memory).budget(MEMORY),
        lower("of it no file's", full, "MB", &|load| load.own_memory),
    ]
}

fn version(generator: &Generator) -> String {
    let output = Command::new(&generator.program).arg("--version").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn load_of_machine() -> String {
    fs::read_to_string("/proc/loadavg").unwrap().split(' ').take(3).collect::<Vec<_>>().join(" ")
}
