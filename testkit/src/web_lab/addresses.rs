//! The source IP that the application sees, with and without the object. Requests are repeated
//! until the answer is as expected.

use std::net::IpAddr;
use std::time::Instant;

use futures_util::future::join_all;
use isp_lab::{Answer, Place, Protocol};

use super::{CLIENT, EDGE, ELSEWHERE, EXTERNAL, NODE_PORT, UNROUTED, WebLab, pod_on};
use crate::answers;

async fn expect(
    web: &WebLab,
    place: &Place,
    (host, port): (&str, u16),
    what: &str,
    is_so: impl Fn(&Answer) -> bool,
) {
    answers::until(&web.lab, what, place, (Protocol::Http, &format!("{host}:{port}")), is_so).await;
}

/// Without the object: the source IP is lost, and non-ingress nodes intercept the external IPs.
pub async fn are_lost(web: &WebLab) {
    let edge = web.node_address(EDGE).to_string();
    for target in [(EXTERNAL, 80), (edge.as_str(), NODE_PORT)] {
        let lost = |answer: &Answer| answer.peer().is_some_and(|peer| peer != CLIENT);
        expect(web, &Place::Client, target, "the address is lost", lost).await;
    }
    for node in ELSEWHERE {
        for place in [Place::Node(node.to_owned()), pod_on(node)] {
            let answered = |answer: &Answer| answer.peer().is_some();
            expect(web, &place, (UNROUTED, 80), "the node answers itself", answered).await;
        }
    }
}

/// With the object: all traffic to the external IP, from anywhere, goes through the ingress node,
/// and the application sees the source IP.
pub async fn arrive(web: &WebLab) {
    let began = Instant::now();
    let edge = web.node_address(EDGE).to_string();
    for target in [(EXTERNAL, 80), (edge.as_str(), NODE_PORT)] {
        let arrived = |answer: &Answer| answer.peer() == Some(CLIENT);
        expect(web, &Place::Client, target, "the client's address arrives", arrived).await;
    }
    println!("the client's address arrives after {:.1} s more", began.elapsed().as_secs_f64());
    join_all(ELSEWHERE.iter().flat_map(|node| {
        // Pods leave the cluster with their node's IP, and the path to the router leads out of the
        // cluster.
        let own = web.node_address(node);
        [Place::Node((*node).to_owned()), pod_on(node)].map(|place| arrives(web, place, own))
    }))
    .await;
}

async fn arrives(web: &WebLab, place: Place, own: IpAddr) {
    let arrived = |answer: &Answer| answer.peer() == Some(own);
    expect(web, &place, (EXTERNAL, 80), "its address arrives", arrived).await;
    let silent = |answer: &Answer| answer.peer().is_none();
    expect(web, &place, (UNROUTED, 80), "the router is asked and knows no way", silent).await;
    let answered = |answer: &Answer| answer.peer().is_some();
    expect(web, &place, (&web.cluster_ip, 80), "the ClusterIP works", answered).await;
}
