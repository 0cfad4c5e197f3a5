//! The deliberate differences from kube-proxy, one by one: the documentation lists exactly these,
//! and both sides do what it says.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use isp_dataplane::model::{Endpoint, Service, ServicePort, Target, TrafficPolicy};
use isp_dataplane::nft::{Family, Protocol};
use isp_testkit::{repository, until};

use crate::addresses::{NODE, OTHER_NODE, UNLISTED, cluster_ip, external, outside, pod};
use crate::cases::Case;
use crate::clients::Client;
use crate::endpoints::PORTS;
use crate::objects::Objects;
use crate::probe::{End, try_all};
use crate::proxies::Served;
use crate::services::{Generated, Slice, Type};

/// The first column of the documentation's table.
const ROWS: [&str; 7] = [
    "drops packets to ClusterIPs that no Service has",
    "`nodePortAddresses` that cover everything: every local address, at once",
    "a client that was remembered at several endpoints gets the first in the order of its rules",
    "remembers at most 65,535 clients of an endpoint",
    "drops clients on a node without a local endpoint if the endpoint elsewhere has the address and port of a frontend",
    "masquerades an endpoint that reaches itself if any Service says that the endpoint is on this node",
    "the same external IP and port in two Services: undefined",
];
/// The agent remembers so many clients of each family.
pub(crate) const REMEMBERED: usize = 32;
const LIMIT: Duration = Duration::from_secs(5);
const PORT: u16 = 80;

/// The documentation's table has these rows and no others.
pub(crate) fn are_documented() {
    let text = std::fs::read_to_string(repository::path("docs/dataplane.md")).unwrap();
    let (_, section) = text.split_once("## Differences from kube-proxy\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let rows: Vec<&str> =
        section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next()).skip(1).collect();
    assert_eq!(rows, ROWS);
}

fn on(address: IpAddr, node: Option<&str>) -> Endpoint {
    Endpoint {
        target: Target { address, port: 0 },
        ready: true,
        serving: true,
        terminating: false,
        node: node.map(Into::into),
        zone_hints: Vec::new(),
        node_hints: Vec::new(),
    }
}

fn target(address: IpAddr) -> Target {
    Target { address, port: PORTS[0] }
}

/// A Service with one port in one family; the last number of its ClusterIP.
fn service(
    name: &str,
    family: Family,
    last: u8,
    change: impl FnOnce(&mut Service),
    endpoints: &[Endpoint],
) -> Generated {
    let port = ServicePort { protocol: Protocol::Tcp, port: PORT, node_port: None, endpoints: Vec::new() };
    let mut service =
        Service { cluster_ips: vec![cluster_ip(family, last)], ports: vec![port], ..Service::default() };
    change(&mut service);
    let kind = match &service {
        Service { load_balancer_ips, .. } if !load_balancer_ips.is_empty() => Type::LoadBalancer,
        Service { ports, .. } if ports[0].node_port.is_some() => Type::NodePort,
        _ => Type::ClusterIp,
    };
    let generated = Generated {
        name: name.to_owned(),
        kind,
        written_ranges: Vec::new(),
        proxied_ips: Vec::new(),
        health_check_node_port: (kind == Type::LoadBalancer
            && service.external_policy == TrafficPolicy::Local)
            .then(|| 31_000 + u16::from(last)),
        service,
        traffic_distribution: None,
        publish_not_ready: false,
        slices: Vec::new(),
    };
    generated.with_slices(vec![Slice { family, ports: vec![(0, PORTS[0])], endpoints: endpoints.to_vec() }])
}

const V4: Family = Family::Ip;
const V6: Family = Family::Ip6;

/// The Services of all differences but the last.
pub(crate) fn services() -> Vec<Generated> {
    let elsewhere = on(pod(V4, 2, 5), Some("n2"));
    vec![
        service(
            "node-port",
            V4,
            1,
            |service| service.ports[0].node_port = Some(30_001),
            &[on(pod(V4, 1, 5), Some(NODE))],
        ),
        service(
            "sticky",
            V4,
            2,
            |service| {
                service.affinity = Some(10_800);
                service.external_policy = TrafficPolicy::Local;
                service.load_balancer_ips = vec![external(V4, 2)];
            },
            // The endpoint on this node comes first in kube-proxy's order.
            &[elsewhere.clone(), on(pod(V4, 1, 6), Some(NODE))],
        ),
        service(
            "crowded",
            V6,
            3,
            |service| service.affinity = Some(10_800),
            &[on(pod(V6, 1, 5), Some(NODE)), on(pod(V6, 2, 5), Some("n2"))],
        ),
        // Its load balancer uses the address of another node, and its port is that of an endpoint
        // there.
        service(
            "on-nodes",
            V4,
            4,
            |service| {
                service.external_policy = TrafficPolicy::Local;
                service.load_balancer_ips = vec![outside(V4, OTHER_NODE)];
                service.ports[0].port = PORTS[0];
            },
            &[elsewhere],
        ),
        service("on-host", V4, 5, |_| (), &[on(outside(V4, OTHER_NODE), Some("n2"))]),
        service("with-node", V4, 6, |_| (), &[on(pod(V4, 1, 5), Some(NODE))]),
        service("without-node", V4, 7, |_| (), &[on(pod(V4, 1, 5), None)]),
    ]
}

fn case(client: Client, address: IpAddr, port: u16) -> Case {
    Case { client, destination: SocketAddr::new(address, port), protocol: Protocol::Tcp }
}

/// One connection of each of the client's first addresses.
fn crowd(served: &Served, case: Case, count: usize) -> Vec<End> {
    let attempts = (0..count).map(|number| case.attempt(number)).collect();
    try_all(&served.world.netns, case.client, attempts, LIMIT)
}

/// The ends of connections to one destination, for kube-proxy and for the agent.
fn ends(served: &[Served; 2], case: Case) -> [BTreeSet<End>; 2] {
    served.each_ref().map(|served| crowd(served, case, 1).into_iter().collect())
}

fn assert_ends(served: &[Served; 2], case: Case, theirs: End, ours: End) {
    assert_eq!(ends(served, case), [BTreeSet::from([theirs]), BTreeSet::from([ours])], "{case:?}");
}

fn answered(by: Target, seen: IpAddr) -> End {
    End::Answered { by, seen }
}

/// Each difference, on both sides.
pub(crate) async fn check(objects: &Objects, served: &[Served; 2]) {
    for (client, family) in [(Client::Partner, V4), (Client::Pod, V6), (Client::Node, V4)] {
        let nobodys = case(client, cluster_ip(family, 199), PORT);
        assert_ends(served, nobodys, End::Dropped, End::Unclaimed);
    }

    let unlisted = case(Client::Partner, outside(V4, UNLISTED), 30_001);
    assert_ends(served, unlisted, answered(target(pod(V4, 1, 5)), pod(V4, 1, 1)), End::Refused);

    several_endpoints(served);
    a_limit_of_clients(served);

    let on_host = case(Client::Pod, cluster_ip(V4, 5), PORT);
    let source = on_host.attempt(0).source;
    assert_ends(served, on_host, End::Dropped, answered(target(outside(V4, OTHER_NODE)), source));

    let itself = case(Client::Endpoint, cluster_ip(V4, 7), PORT);
    assert_ends(served, itself, answered(target(pod(V4, 1, 5)), pod(V4, 1, 1)), End::Dropped);

    two_services_with_one_address(objects, served).await;
}

/// A client is remembered at an endpoint elsewhere, then at the one on this node.
fn several_endpoints(served: &[Served; 2]) {
    let (internal, external) =
        (case(Client::Partner, cluster_ip(V4, 2), PORT), case(Client::Partner, external(V4, 2), PORT));
    let (here, elsewhere) = (target(pod(V4, 1, 6)), target(pod(V4, 2, 5)));
    let by = |end: &End| match end {
        End::Answered { by, .. } => *by,
        other => panic!("{other}"),
    };
    for (served, expected) in served.iter().zip([here, elsewhere]) {
        let clients = REMEMBERED / 2;
        let first: Vec<Target> = crowd(served, internal, clients).iter().map(by).collect();
        let second: Vec<Target> = crowd(served, external, clients).iter().map(by).collect();
        let third: Vec<Target> = crowd(served, internal, clients).iter().map(by).collect();
        assert_eq!(BTreeSet::from_iter(second), BTreeSet::from([here]), "{}", served.name);
        let moved: BTreeSet<Target> = first
            .iter()
            .zip(third)
            .filter(|(first, _)| **first == elsewhere)
            .map(|(_, third)| third)
            .collect();
        assert_eq!(moved, BTreeSet::from([expected]), "{}", served.name);
    }
}

/// More clients than the agent remembers.
fn a_limit_of_clients(served: &[Served; 2]) {
    let case = case(Client::Partner, cluster_ip(V6, 3), PORT);
    let [theirs, ours] = served.each_ref().map(|served| {
        let (first, second) = (crowd(served, case, REMEMBERED * 2), crowd(served, case, REMEMBERED * 2));
        assert!(first.iter().all(|end| matches!(end, End::Answered { .. })), "{}: {first:?}", served.name);
        first.iter().zip(&second).filter(|(first, second)| first != second).count()
    });
    assert_eq!(theirs, 0, "kube-proxy has room for these");
    assert!((1..=REMEMBERED).contains(&ours), "{ours} of {} clients moved", REMEMBERED * 2);
    let list = served[0].world.netns.check("node", &["nft", "list", "sets", "ip6"], "").unwrap();
    assert!(list.stdout.contains("size 65535"), "{}", list.stdout);
}

/// The second Service with an address comes last, because kube-proxy may not be able to program it.
async fn two_services_with_one_address(objects: &Objects, served: &[Served; 2]) {
    let shared = external(V4, 9);
    let own = |service: &mut Service| service.external_ips = vec![shared];
    objects.write(&service("first", V4, 9, own, &[on(pod(V4, 1, 6), Some(NODE))])).await;
    objects.write(&service("second", V4, 10, own, &[on(pod(V4, 1, 7), Some(NODE))])).await;
    let second = case(Client::Partner, cluster_ip(V4, 10), PORT);
    for served in served {
        until(&format!("{} serves both Services", served.name), async || {
            let ends = crowd(served, second, 1);
            if matches!(ends[..], [End::Answered { .. }]) { Ok(()) } else { Err((ends, served.log())) }
        })
        .await;
    }
    let [first, second] = [6, 7].map(|last| answered(target(pod(V4, 1, last)), pod(V4, 1, 1)));
    let [theirs, ours] = ends(served, case(Client::Partner, shared, PORT));
    assert!(theirs.is_subset(&BTreeSet::from([first, second])), "{theirs:?}");
    assert_eq!(ours, BTreeSet::from([first]));
}
