//! Processes of the node without a credential, against an agent with the memory limit of its
//! container: they neither exhaust its memory nor delay kube-proxy. Two hundred connections keep
//! handshakes open, begin them and fall silent, complete them without a certificate and send large
//! bodies, send large bodies without TLS, and reconnect as soon as they are cut.
//!
//! `cargo xtask soak agent-flood` runs it for ten minutes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod strangers;

use std::fs;
use std::time::{Duration, Instant};

use isp_lab::ControlPlane;
use isp_testkit::agent::Agent;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use strangers::{Manner, Strangers};

const CONNECTIONS: usize = 200;
/// The limit until an open watch shows a new Service.
const SEEN: Duration = Duration::from_secs(5);
/// The limit until the agent serves a kube-proxy that has just started, on a busy machine.
const STARTED: Duration = Duration::from_secs(30);
/// The memory limit of the agent's container.
const MEMORY: u64 = 64 << 20;
const DEADLINE: Duration = Duration::from_mins(2);
const KUBE_PROXY: &str = "-HUser-Agent: kube-proxy/v1.37.0";
const FROM_START: &str = "/api/v1/services?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

fn length() -> Duration {
    let seconds = std::env::var("ISP_SOAK_FLOOD").ok().map_or(15, |text| text.parse().unwrap());
    Duration::from_secs(seconds)
}

/// Returns the peak memory of the process.
fn peak(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

async fn make(cluster: &ControlPlane, name: &str) {
    let services: Api<Service> = Api::namespaced(cluster.client().unwrap(), "default");
    let service = json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}});
    services.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_connections_without_a_credential_take_neither_memory_nor_turns() {
    let cluster = ControlPlane::shared().await.unwrap();
    let mut agent = Agent::of(env!("CARGO_BIN_EXE_proxy-agent")).memory(MEMORY).start(cluster).await;
    agent.wait_for_services();
    let process = agent.process();
    let patience = (length() + DEADLINE).as_secs().to_string();
    let watch =
        agent.follow(&["--max-time", &patience, KUBE_PROXY, "-HAccept: application/json", FROM_START]);
    while !watch.next().unwrap().contains("initial-events-end") {}
    let before = peak(process);

    let authority = fs::read(agent.file("ca.crt")).unwrap();
    let name = agent.name();
    let known = (name.as_str(), authority.as_slice());
    let manners = [Manner::Silent, Manner::Begins, Manner::Hasty, Manner::Informed, Manner::Plain];
    let strangers = Strangers::begin(agent.address, CONNECTIONS, &manners, known);
    // The clients at the other port try to make the liveness probe fail.
    let others = Strangers::begin(agent.admin, CONNECTIONS / 2, &[Manner::Silent, Manner::Plain], known);
    let (began, length) = (Instant::now(), length());
    let mut services = 0;
    let [mut slowest_event, mut slowest_start, mut slowest_probe] = [Duration::ZERO; 3];
    while began.elapsed() < length {
        let name = format!("flood-{services}");
        make(cluster, &name).await;
        services += 1;
        let made = Instant::now();
        // A connected kube-proxy.
        loop {
            let event: Value = serde_json::from_str(&watch.next().unwrap()).unwrap();
            if event["object"]["metadata"]["name"] == *name {
                break;
            }
        }
        slowest_event = slowest_event.max(made.elapsed());
        assert!(made.elapsed() < SEEN, "an open watch told of {name} after {:?}", made.elapsed());
        // A kube-proxy that has just started retries until it is served.
        let started = Instant::now();
        while !agent.ask(&[KUBE_PROXY, "/api/v1/services"]).1.contains(&name) {
            assert!(started.elapsed() < STARTED, "a new connection is not served within {STARTED:?}");
        }
        slowest_start = slowest_start.max(started.elapsed());
        let probed = Instant::now();
        assert!(agent.program.is_healthy(), "the kubelet gets no answer");
        slowest_probe = slowest_probe.max(probed.elapsed());
        assert!(probed.elapsed() < SEEN, "the kubelet got its answer after {:?}", probed.elapsed());
        assert!(agent.program.is_alive(), "the agent has ended");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let (calls, probes) = (strangers.end().await, others.end().await);
    assert_eq!(agent.process(), process);
    let after = peak(process);
    println!(
        "{calls} and {probes} calls of strangers in {:.0} s; {services} Services: the slowest event {slowest_event:?}, the slowest start \
         {slowest_start:?}, the slowest probe {slowest_probe:?}; \
         memory {} MB before, {} MB at most",
        began.elapsed().as_secs_f64(),
        before / 1_000_000,
        after / 1_000_000,
    );
    assert!(calls > CONNECTIONS as u64 * 3, "they called {calls} times, which is no flood");
    assert!(after - before < 16 << 20, "it grew from {before} to {after}");
}
