//! Processes of the node without any credential, against an agent under the memory limit of its container: they get no memory and no turn.
//! Two hundred connections do all that a stranger can: hold handshakes open, begin them and fall silent, finish them without a certificate
//! and send large bodies at once, send large bodies without TLS, and come back the moment they are cut.
//!
//! `cargo xtask soak agent-flood` does it for ten minutes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

#[path = "../agent/mod.rs"]
mod agent;
mod strangers;

use std::fs;
use std::time::{Duration, Instant};

use agent::Agent;
use isp_lab::ControlPlane;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use strangers::{Manner, Strangers};

const CONNECTIONS: usize = 200;
/// Until a Service that is made meanwhile is seen.
const SEEN: Duration = Duration::from_secs(5);
/// Until a kube-proxy that has just been started is served, on a machine that others keep busy as well.
const STARTED: Duration = Duration::from_secs(15);
/// Of the agent's container.
const MEMORY: u64 = 64 << 20;
const DEADLINE: Duration = Duration::from_mins(2);
const KUBE_PROXY: &str = "-HUser-Agent: kube-proxy/v1.37.0";
const FROM_START: &str = "/api/v1/services?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

fn length() -> Duration {
    let seconds = std::env::var("ISP_SOAK_FLOOD").ok().map_or(15, |text| text.parse().unwrap());
    Duration::from_secs(seconds)
}

/// The most memory that the process has had.
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
    let mut agent = Agent::start_limited(cluster, MEMORY).await;
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
    // Those at the other port would like the kubelet to believe that the agent is dead.
    let others = Strangers::begin(agent.admin, CONNECTIONS / 2, &[Manner::Silent, Manner::Plain], known);
    let (began, length) = (Instant::now(), length());
    let mut services = 0;
    let [mut slowest_event, mut slowest_start, mut slowest_probe] = [Duration::ZERO; 3];
    while began.elapsed() < length {
        let name = format!("flood-{services}");
        make(cluster, &name).await;
        services += 1;
        let made = Instant::now();
        // kube-proxy, which is connected.
        loop {
            let event: Value = serde_json::from_str(&watch.next().unwrap()).unwrap();
            if event["object"]["metadata"]["name"] == *name {
                break;
            }
        }
        slowest_event = slowest_event.max(made.elapsed());
        assert!(made.elapsed() < SEEN, "an open watch told of {name} after {:?}", made.elapsed());
        // And one that has just been started: it tries until it is served.
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
