//! How long the kernel takes: first load, one endpoint replaced, a Service added, all read back.
//!
//! `cargo bench -p isp-kernel --bench dataplane`. Needs root, `unshare` and a kernel with
//! `nf_tables`. It runs in a network namespace of its own. `ISP_BENCH_SERVICES` limits the number
//! of Services. The figures are for people; nothing asserts on them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark fails as a test does")]

use std::env;
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

use isp_dataplane::compile::compile;
use isp_dataplane::model::{
    Endpoint, LocalPods, Node, NodePortAddresses, Service, ServiceName, ServicePort, Target, View,
};
use isp_dataplane::netlink::Batch;
use isp_dataplane::nft::{Family, Name, Operation, Protocol};
use isp_dataplane::plane::Plane;
use isp_dataplane::rules::Settings;
use isp_kernel::{Found, Kernel};

const INSIDE: &str = "ISP_BENCH_IS_INSIDE";
const ROUNDS: u32 = 500;

fn main() -> ExitCode {
    if env::var_os(INSIDE).is_none() {
        let mut again = Command::new("unshare");
        again.args(["--net", "--"]).arg(env::current_exe().unwrap()).env(INSIDE, "1");
        let succeeded = again.status().is_ok_and(|status| status.success());
        return if succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let limit = env::var("ISP_BENCH_SERVICES").ok().map(|limit| limit.parse().unwrap());
    for (services, endpoints) in [(5_000, 2), (50_000, 5)] {
        measure(limit.unwrap_or(services).min(services), endpoints);
    }
    ExitCode::SUCCESS
}

fn measure(services: u32, endpoints: u32) {
    println!("{services} Services x {endpoints} endpoints, IPv4");
    let node = node();
    let settings = Settings {
        table: Name::constant("ingress-source-preserve"),
        family: Family::Ip,
        ahead: 5,
        remembered_clients: 65_536,
    };

    let start = Instant::now();
    let mut plane = Plane::new(settings, node.clone());
    let plan = |number| compile(&service(number, endpoints, 0), &node, View::Full, Family::Ip);
    plane.begin((0..services).filter_map(|number| Some((name(number), plan(number)?))));
    let (table, elements) = (plane.table(), plane.elements());
    show("compile all", start.elapsed());

    let mut kernel = Kernel::open().unwrap();
    kernel.probe(std::slice::from_ref(&table)).unwrap();
    let start = Instant::now();
    let mut batch = Batch::new();
    batch.add_elements(&kernel.id(&table), &table, &elements);
    let encoded = start.elapsed();
    println!("  {:<40} {:>10} elements, {} bytes", "first load", elements.len(), batch.byte_length());
    show("  encode it", encoded);
    let start = Instant::now();
    kernel.load(&[(&table, &elements)]).unwrap();
    show("  encode, send and commit it", start.elapsed());

    let start = Instant::now();
    let Found::Present { difference: None, elements: read } = kernel.read(&table).unwrap() else {
        panic!("the table is not as it was loaded")
    };
    show("read it back and compare", start.elapsed());
    assert_eq!(read.len(), elements.len());

    let mut commit = |operations: &[Operation]| {
        let start = Instant::now();
        let mut batch = Batch::new();
        batch.apply(&kernel.id(&table), operations);
        kernel.commit(&batch).unwrap();
        start.elapsed()
    };
    let (mut compiled, mut committed) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let number = round * 7 % services;
        let start = Instant::now();
        let plan = compile(&service(number, endpoints, round), &node, View::Full, Family::Ip);
        let update = plane.set(&name(number), plan);
        compiled.push(start.elapsed());
        committed.push(commit(&update.now));
        commit(&plane.sweep());
    }
    spread("replace one endpoint: compile", compiled);
    spread("replace one endpoint: encode, commit", committed);

    let (mut compiled, mut committed) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let number = services + round;
        let start = Instant::now();
        let plan = compile(&service(number, endpoints, 0), &node, View::Full, Family::Ip);
        let update = plane.set(&name(number), plan);
        compiled.push(start.elapsed());
        committed.push(commit(&update.now));
    }
    spread("add a Service: compile", compiled);
    spread("add a Service: encode, commit", committed);
    kernel.unload(&[&table]).unwrap();
}

fn show(what: &str, took: Duration) {
    println!("  {what:<40} {:>10.3} ms", took.as_secs_f64() * 1000.0);
}

fn spread(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1000.0;
    println!("  {what:<40} {:>10.3} ms at the median, {:.3} ms at p99", at(50), at(99));
}

fn node() -> Node {
    Node {
        name: "node".into(),
        zone: None,
        addresses: vec!["192.0.2.1".parse().unwrap()],
        local_pods: LocalPods::Unknown,
        node_port_addresses: NodePortAddresses::Primary,
        masquerade_all: false,
    }
}

fn name(number: u32) -> Arc<ServiceName> {
    Arc::new(ServiceName { namespace: "bench".to_owned(), name: format!("s{number}") })
}

/// A Service with a ClusterIP. The variant changes the address of its last endpoint.
fn service(number: u32, endpoints: u32, variant: u32) -> Service {
    let address = |base: u32, offset: u32| IpAddr::from(Ipv4Addr::from_bits(base + offset));
    let endpoint = |index: u32| {
        let moved = if index + 1 == endpoints { variant << 20 } else { 0 };
        Endpoint {
            target: Target { address: address(0x1000_0000, number * 16 + index + moved), port: 8080 },
            ready: true,
            serving: true,
            terminating: false,
            node: None,
            zone_hints: Vec::new(),
            node_hints: Vec::new(),
        }
    };
    Service {
        cluster_ips: vec![address(0x0a60_0000, number)],
        ports: vec![ServicePort {
            protocol: Protocol::Tcp,
            port: 80,
            node_port: None,
            endpoints: (0..endpoints).map(endpoint).collect(),
        }],
        ..Service::default()
    }
}
