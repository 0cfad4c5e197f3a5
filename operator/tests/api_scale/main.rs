//! Many objects, nodes and Services on a real API server: planning time, memory, requests until
//! convergence, and no writes at rest. A small version runs with every test run; `ISP_SCALE` sets
//! the sizes of the large one, as `objects,nodes,services,seconds at rest`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod pods;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream;
use isp_api::IngressSourcePreserve;
use isp_api::preserve::Phase;
use isp_testkit::simulated::Cluster;
use isp_testkit::{Patience, kube_proxy, until};
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

/// Number of nodes that are non-ingress nodes for every object. With a thousand objects, an agent's
/// report is 150 kB, so reports of all nodes would only test etcd. All other nodes are ingress
/// nodes.
const ELSEWHERE: usize = 50;
/// Concurrency of the setup requests.
const AT_ONCE: usize = 16;

struct Scale {
    objects: usize,
    nodes: usize,
    services: usize,
    rest: Duration,
}

impl Scale {
    fn asked() -> Self {
        let text = std::env::var("ISP_SCALE").unwrap_or_else(|_| "10,60,50,5".to_owned());
        let numbers: Vec<usize> = text.split(',').map(|number| number.parse().unwrap()).collect();
        let [objects, nodes, services, rest] = numbers[..] else {
            panic!("ISP_SCALE={text} is not four numbers")
        };
        Self { objects, nodes, services, rest: Duration::from_secs(rest as u64) }
    }
}

fn service(number: usize) -> [Value; 2] {
    let name = format!("s{number}");
    [
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "web"},
            // External IPs, because there are fewer node ports than Services.
            "spec": {"externalIPs": [format!("198.18.{}.{}", number / 250, number % 250 + 1)], "selector": {"app": name}, "ports": [{"port": 80}]},
        }),
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": name, "namespace": "web", "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4",
            "endpoints": [
                {"addresses": ["10.1.2.3"], "nodeName": "n0", "conditions": {"ready": true}},
                {"addresses": ["10.1.2.4"], "nodeName": "n1", "conditions": {"ready": true}},
            ],
        }),
    ]
}

fn object(number: usize, scale: &Scale) -> Value {
    let own = (0..scale.services).filter(|service| service % scale.objects == number);
    let services: Vec<Value> =
        own.map(|service| json!({"namespace": "web", "name": format!("s{service}")})).collect();
    json!({
        "ingressNodes": {"selector": {"matchLabels": {"ingress": ""}}},
        "services": services,
        "rollout": {"maxUnavailable": "50%"},
    })
}

/// An entry of a process's status, in MB.
fn memory(process: u32, entry: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(entry)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

/// The operator's metrics by name and labels.
fn metrics(cluster: &Cluster) -> BTreeMap<String, f64> {
    let lines = cluster.operator().metrics();
    assert!(!lines.is_empty(), "the operator does not answer");
    lines
        .iter()
        .filter_map(|line| line.rsplit_once(' '))
        .filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)))
        .collect()
}

/// Requests so far: writes without those of the Lease, and lists plus gets.
fn calls(metrics: &BTreeMap<String, f64>) -> (f64, f64) {
    let of = |verbs: &[&str]| {
        metrics
            .iter()
            .filter(|(name, _)| {
                name.starts_with("isp_operator_api_calls") && !name.contains("kind=\"Lease\"")
            })
            .filter(|(name, _)| verbs.iter().any(|verb| name.contains(&format!("verb=\"{verb}\""))))
            .map(|(_, count)| count)
            .sum()
    };
    (of(&["Patch", "Create", "Update", "Delete"]), of(&["Get", "List"]))
}

async fn fill(cluster: &Cluster, scale: &Scale) {
    cluster.namespace("web").await;
    cluster.create(&kube_proxy::daemon_set(None), "kubeadm").await;
    cluster.create(&kube_proxy::configuration(), "kubeadm").await;
    stream::iter(0..scale.nodes)
        .for_each_concurrent(AT_ONCE, async |number| {
            let elsewhere = number + ELSEWHERE >= scale.nodes;
            let labels = if elsewhere { json!({"kind": "work"}) } else { json!({"ingress": ""}) };
            cluster.node(&format!("n{number}"), &labels).await;
        })
        .await;
    stream::iter(0..scale.services)
        .for_each_concurrent(AT_ONCE, async |number| {
            for object in service(number) {
                cluster.create(&object, "kubectl-create").await;
            }
        })
        .await;
}

async fn ready(cluster: &Cluster) -> usize {
    let objects: Api<IngressSourcePreserve> = Api::all(cluster.client.clone());
    // A busy API server may fail this list; the caller retries.
    let Ok(all) = objects.list(&ListParams::default()).await else { return 0 };
    let phases = all.iter().filter_map(|object| object.status.as_ref()?.phase);
    phases.filter(|phase| *phase == Phase::Ready).count()
}

/// The metrics once no requests are sent any more. The last status updates and the Events, which
/// are published one by one, have to finish first.
async fn at_rest(cluster: &Cluster) -> BTreeMap<String, f64> {
    until("the operator comes to rest", async || {
        let before = metrics(cluster);
        tokio::time::sleep(Duration::from_secs(3)).await;
        let after = metrics(cluster);
        if calls(&before) == calls(&after) { Ok(after) } else { Err(calls(&after)) }
    })
    .await
}

#[tokio::test]
async fn many_objects_nodes_and_services_converge_and_come_to_rest() {
    let scale = Scale::asked();
    let mut cluster = Cluster::without_operator(env!("CARGO_BIN_EXE_operator")).await;
    fill(&cluster, &scale).await;
    let stand_in = cluster.stand_in();

    // Baseline: the index is complete and there is nothing to do.
    cluster.start_operator();
    until("the operator has read everything", async || cluster.operator().is_ready()).await;
    let floor = memory(cluster.operator().id(), "VmRSS");

    let started = Instant::now();
    stream::iter(0..scale.objects)
        .for_each_concurrent(AT_ONCE, async |number| {
            cluster.preserve(&format!("o{number}"), object(number, &scale)).await;
        })
        .await;
    let limit = Duration::from_secs(120 + 2 * scale.objects as u64);
    // Rarely, because the list of a thousand objects would load the API server.
    let patience = Patience { limit, pause: Duration::from_secs(if scale.objects > 100 { 5 } else { 1 }) };
    patience
        .until(&format!("{} objects are ready", scale.objects), async || {
            let ready = ready(&cluster).await;
            if ready == scale.objects { Ok(()) } else { Err(ready) }
        })
        .await;
    let converged = started.elapsed();
    stand_in.abort();

    let before = at_rest(&cluster).await;
    tokio::time::sleep(scale.rest).await;
    let after = metrics(&cluster);
    let ((writes, reads), (later_writes, later_reads)) = (calls(&before), calls(&after));
    assert!(writes > 0.0 && reads > 0.0, "{after:?}");
    assert_eq!((later_writes, later_reads), (writes, reads), "at rest nothing is written or read");

    let plan = |part: &str| {
        after
            .iter()
            .find(|(name, _)| name.contains("plan") && name.contains(part))
            .map_or(0.0, |(_, value)| *value)
    };
    let (rss, peak) = (memory(cluster.operator().id(), "VmRSS"), memory(cluster.operator().id(), "VmHWM"));
    println!(
        "{} objects, {} nodes ({ELSEWHERE} elsewhere), {} Services: converged in {:.1} s with {writes} writes and {reads} reads; \
         {} plans, {:.1} ms each in the mean; {:.1} MB resident ({:.1} MB at the peak), of which {:.1} MB before any object; \
         0 writes in {} s at rest",
        scale.objects,
        scale.nodes,
        scale.services,
        converged.as_secs_f64(),
        plan("_count"),
        1000.0 * plan("_sum") / plan("_count").max(1.0),
        rss,
        peak,
        floor,
        scale.rest.as_secs(),
    );
}
