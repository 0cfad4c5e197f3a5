//! Measures the failed requests of rolling restarts: a Deployment of twenty pods restarts again and
//! again while clients send 200 requests a second to each of two Services of the same pods. A stock
//! kube-proxy with default settings serves one, and agents of mode Beside serve the other, at the
//! same time and on the same nodes. The application exits as soon as it gets SIGTERM, as many do.
//!
//! It prints figures and asserts none. `ISP_BENCH_RESTARTS=2` is a quick run.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark fails by panicking")]

mod figures;

use std::env;
use std::time::{Duration, Instant};

use figures::{Figures, Tally};
use isp_lab::{ECHO_IMAGE, Lab, Place};
use isp_testkit::beside::{Agents, Steps, create_object};
use isp_testkit::traffic::start_echo;
use isp_testkit::web_lab::{EDGE, ELSEWHERE, WebLab, pod_on};
use isp_testkit::{Process, preserve, until};
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use serde_json::{Value, json};
use tokio::time::sleep;

const RESTARTS: usize = 20;
const PODS: usize = 20;
/// Each Service has two clients, so this is 200 requests a second.
const INTERVAL: &str = "10";
const TIMEOUT: &str = "2000";
/// After each restart, the last old pods are gone and the last requests have ended.
const REST: Duration = Duration::from_secs(4);

/// The two Services, and who serves them.
const SERVICES: [(&str, &str, u16); 2] =
    [("by-kube-proxy", "kube-proxy", 30180), ("by-beside", "Beside", 30190)];

#[tokio::main]
async fn main() {
    let restarts = env::var("ISP_BENCH_RESTARTS").map_or(RESTARTS, |count| count.parse().unwrap());
    let program = env!("CARGO_BIN_EXE_proxy-agent");
    let measured = env::var("ISP_BENCH_PROGRAM").unwrap_or_else(|_| program.to_owned());
    let web = WebLab::up("rolling-restart", program).await;
    let lab = &web.lab;
    preserve::install(lab).await;
    lab.apply(&json!({"apiVersion": "v1", "kind": "List", "items": objects()}).to_string()).await.unwrap();
    let beside = Steps { lab, namespace: "default", service: SERVICES[1].0 };
    create_object(lab, &[("default", SERVICES[1].0)]).await;
    beside.ignore(true).await;
    beside.preserve(true).await;
    wait_for_rollout(lab).await;
    let mut agents = Agents::new(lab, &measured, web.logs());
    for node in [EDGE, ELSEWHERE[0], ELSEWHERE[1]] {
        agents.start(node).await;
    }
    agents.wait_until_served(&["default/by-beside"]).await;

    let clients = start_clients(&web).await;
    let began = Instant::now();
    for restart in 1..=restarts {
        lab.kubectl(["rollout", "restart", "deployment/rolling"]).await.unwrap();
        wait_for_rollout(lab).await;
        sleep(REST).await;
        let failed: Vec<String> = clients
            .iter()
            .map(|(who, client)| format!("{who} {}", Tally::read(&client.printed()).failed()))
            .collect();
        eprintln!(
            "bench: restart {restart} of {restarts} after {:.0} s; failed so far: {}",
            began.elapsed().as_secs_f32(),
            failed.join(", ")
        );
    }
    let mut figures = Figures::new(restarts, PODS, began.elapsed());
    for (who, mut client) in clients {
        client.kill();
        figures.add(who, &Tally::read(&client.printed()));
    }
    println!("{figures}");
}

/// Starts the clients of both Services, and one that sends requests to a pod that does not restart,
/// and waits until each has a response.
async fn start_clients(web: &WebLab) -> Vec<(&'static str, Process)> {
    let services: Api<Service> = Api::namespaced(web.lab.client(), "default");
    let edge = web.node_address(EDGE);
    let mut clients = Vec::new();
    for (name, who, node_port) in SERVICES {
        let cluster_ip = services.get(name).await.unwrap().spec.unwrap().cluster_ip.unwrap();
        let ways = [
            (pod_on(ELSEWHERE[1]), format!("{cluster_ip}:80")),
            (Place::Client, format!("{edge}:{node_port}")),
        ];
        for (place, target) in ways {
            clients.push((who, start_client(web, &place, &target).await));
        }
    }
    let control = format!("{}:8080", web.pod_ip);
    clients.push(("no Service", start_client(web, &pod_on(ELSEWHERE[1]), &control).await));
    until("each client has an answer", async || {
        clients.iter().all(|(_, client)| client.printed().contains("peerIp"))
    })
    .await;
    clients
}

async fn start_client(web: &WebLab, place: &Place, target: &str) -> Process {
    let asks = ["ask", "http", target, "--count=0", "--interval", INTERVAL, "--timeout", TIMEOUT];
    start_echo(&web.lab, place, &asks, &web.file(&format!("{place} to {target}"))).await
}

async fn wait_for_rollout(lab: &Lab) {
    lab.kubectl(["rollout", "status", "deployment/rolling", "--timeout=600s"]).await.unwrap();
}

/// The Deployment and its two Services.
fn objects() -> Vec<Value> {
    let labels = json!({"app": "rolling"});
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "rolling", "namespace": "default"},
        "spec": {
            "replicas": PODS,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{
                    "name": "echo",
                    "image": ECHO_IMAGE,
                    "imagePullPolicy": "Never",
                    "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 1},
                }]},
            },
        },
    });
    let service = |(name, _, node_port): (&str, &str, u16)| {
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "type": "NodePort",
                "selector": labels,
                "ports": [{"port": 80, "targetPort": 8080, "nodePort": node_port}],
            },
        })
    };
    [deployment].into_iter().chain(SERVICES.map(service)).collect()
}
