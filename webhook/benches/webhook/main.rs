//! Measures the cost of the webhook: the webhook and Istio's injector answer the same review of the
//! same pod, side by side in one run. Each runs on one core, the load generator on another. It
//! prints figures beside their budgets and asserts none, because they depend on the machine as
//! well. Every response must be correct.
//!
//! On a busy machine both wait for their core, and the table shows how long; the highest
//! percentiles then measure the machine. The idle server is stopped (SIGSTOP), and so are all other
//! processes of the benchmark while latencies are measured.
//!
//! `ISP_BENCH_SECONDS=9` is a quick run.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a benchmark fails by panicking")]

mod ask;
mod figures;
mod load;
mod quiet;
mod review;
mod server;

use std::fs;
use std::process::Command;
use std::time::Duration;

use figures::{Budget, Line};
use isp_lab::provision;
use isp_testkit::webhook::Cluster;
use load::{Cores, Generator, Load, Pace};
use quiet::{Quiet, started};
use serde_json::json;
use server::Server;

/// Duration of each measurement of each server, over all rounds.
const SECONDS: u64 = 30;
/// The servers alternate, so that disturbances affect both.
const ROUNDS: u32 = 3;

const CONNECTIONS: u32 = 8;
const MANY_CONNECTIONS: u32 = 256;
/// A rate that both can serve, on one connection: several would send almost simultaneously and then
/// wait for each other.
const SLOW: Pace = Pace { connections: 1, per_second: Some(40) };
/// A large cluster that restarts all pods at once.
const FAST: Pace = Pace { connections: CONNECTIONS, per_second: Some(1_000) };
/// The same rate from many API servers with a connection each.
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
    let cluster = Cluster::start(env!("CARGO_BIN_EXE_webhook")).await;
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
    // Runs before the maximum load, after which the webhook may keep more memory.
    let [many] = in_turns(&generator, [&webhook], both, MANY, duration);
    let full = in_turns(&generator, both, both, FULL, duration);
    for server in both {
        assert!(server.answers_rightly().await, "{} still answers correctly", server.name);
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

/// Creates a namespace whose pods get sidecars, and an object that sets their mode.
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
            // A running API server disturbs latencies. Without one, reconnecting would take memory.
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
        lower("median of each second's p99", slow, "ms", &Load::p99_of_a_second),
        lower("waiting for a core", slow, "%", &|load| load.watched.kept_waiting()).without_ratio(),
        Line::heading(FAST.to_string()),
        Line::lower("  p50", fast.quantile(0.5), None, "ms").budget(P50),
        Line::lower("  p99", fast.quantile(0.99), None, "ms").budget(P99),
        Line::lower("  median of each second's p99", fast.p99_of_a_second(), None, "ms").budget(P99),
        Line::lower("  waiting for a core", fast.watched.kept_waiting(), None, "%"),
        Line::lower("  stolen by the hypervisor", fast.watched.stolen(), None, "%"),
        Line::heading(MANY.to_string()),
        Line::lower("  memory", many.memory, None, "MB").budget(MEMORY),
        Line::lower("  of it anonymous", many.own_memory, None, "MB"),
        Line::heading(FULL.to_string()),
        Line::higher("  reviews", webhook.per_second(), Some(istiod.per_second()), "/s").budget(REVIEWS),
        lower("p50", full, "ms", &|load| load.quantile(0.5)),
        lower("p99", full, "ms", &|load| load.quantile(0.99)),
        lower("processor for a review", full, "ms", &|load| load.watched.processor()),
        lower("core in use", full, "%", &|load| load.watched.busy()).without_ratio(),
        lower("waiting for a core", full, "%", &|load| load.watched.kept_waiting()).without_ratio(),
        lower("memory", full, "MB", &|load| load.memory).budget(MEMORY),
        lower("of it anonymous", full, "MB", &|load| load.own_memory),
    ]
}

fn version(generator: &Generator) -> String {
    let output = Command::new(&generator.program).arg("--version").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn load_of_machine() -> String {
    fs::read_to_string("/proc/loadavg").unwrap().split(' ').take(3).collect::<Vec<_>>().join(" ")
}
