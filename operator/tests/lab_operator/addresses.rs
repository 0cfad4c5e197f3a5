//! The source IP that the application sees, with and without the object.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use isp_lab::{Answer, Place, Protocol};

use super::harness::{EDGE, ELSEWHERE, EXTERNAL, NODE_PORT, Scenario, UNROUTED, pod_on};

/// The external client.
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 10));
/// kube-proxy takes a second or two to apply changes, and longer on a busy machine.
const DEADLINE: Duration = Duration::from_secs(20);

/// Sends requests until the response is as expected.
async fn expect(
    scenario: &Scenario,
    place: &Place,
    (host, port): (&str, u16),
    what: &str,
    is_so: impl Fn(&Answer) -> bool,
) {
    let began = Instant::now();
    loop {
        let answer = scenario.lab.ask(place, Protocol::Http, &format!("{host}:{port}")).await.unwrap();
        if is_so(&answer) {
            return;
        }
        assert!(began.elapsed() < DEADLINE, "{place} to {host}:{port}: {what}, but {answer:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Without the object: the source IP is lost, and non-ingress nodes intercept the external IPs.
pub(crate) async fn are_lost(scenario: &Scenario) {
    let edge = scenario.node_address(EDGE).to_string();
    for target in [(EXTERNAL, 80), (edge.as_str(), NODE_PORT)] {
        let lost = |answer: &Answer| answer.peer().is_some_and(|peer| peer != CLIENT);
        expect(scenario, &Place::Client, target, "the address is lost", lost).await;
    }
    for node in ELSEWHERE {
        for place in [Place::Node(node.to_owned()), pod_on(node)] {
            let answered = |answer: &Answer| answer.peer().is_some();
            expect(scenario, &place, (UNROUTED, 80), "the node answers itself", answered).await;
        }
    }
}

/// With the object: all traffic to the external IP, from anywhere, goes through the ingress node,
/// and the application sees the source IP.
pub(crate) async fn arrive(scenario: &Scenario) {
    let began = Instant::now();
    let edge = scenario.node_address(EDGE).to_string();
    for target in [(EXTERNAL, 80), (edge.as_str(), NODE_PORT)] {
        let arrived = |answer: &Answer| answer.peer() == Some(CLIENT);
        expect(scenario, &Place::Client, target, "the client's address arrives", arrived).await;
    }
    println!("the client's address arrives after {:.1} s more", began.elapsed().as_secs_f64());
    join_all(ELSEWHERE.iter().flat_map(|node| {
        // Pods leave the cluster with their node's IP, and the path to the router leads out of the
        // cluster.
        let own = scenario.node_address(node);
        [Place::Node((*node).to_owned()), pod_on(node)].map(|place| arrives(scenario, place, own))
    }))
    .await;
}

async fn arrives(scenario: &Scenario, place: Place, own: IpAddr) {
    let arrived = |answer: &Answer| answer.peer() == Some(own);
    expect(scenario, &place, (EXTERNAL, 80), "its address arrives", arrived).await;
    let silent = |answer: &Answer| answer.peer().is_none();
    expect(scenario, &place, (UNROUTED, 80), "the router is asked and knows no way", silent).await;
    let answered = |answer: &Answer| answer.peer().is_some();
    expect(scenario, &place, (&scenario.cluster_ip, 80), "the ClusterIP works", answered).await;
}
