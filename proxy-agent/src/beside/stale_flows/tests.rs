use std::sync::Arc;

use isp_dataplane::compile::compile;
use isp_dataplane::model::{
    Endpoint, LocalPods, NodePortAddresses, Service, ServicePort, TrafficPolicy, View,
};

use super::*;

fn node() -> Node {
    Node {
        name: Arc::from("n1"),
        zone: None,
        addresses: vec![[192, 0, 2, 1].into()],
        local_pods: LocalPods::Unknown,
        node_port_addresses: NodePortAddresses::Primary,
        masquerade_all: false,
    }
}

fn plan(protocol: Protocol, endpoints: &[u8], external: bool) -> ServicePlan {
    let endpoint = |last: &u8| Endpoint {
        target: Target { address: [10, 244, 1, *last].into(), port: 5353 },
        ready: true,
        serving: true,
        terminating: false,
        node: None,
        zone_hints: Vec::new(),
        node_hints: Vec::new(),
    };
    let service = Service {
        cluster_ips: vec![[10, 96, 0, 53].into()],
        external_ips: if external { vec![[203, 0, 113, 7].into()] } else { Vec::new() },
        external_policy: TrafficPolicy::Cluster,
        ports: vec![ServicePort {
            protocol,
            port: 53,
            node_port: Some(30053),
            endpoints: endpoints.iter().map(endpoint).collect(),
        }],
        ..Service::default()
    };
    compile(&service, &node(), View::Full, Family::Ip).unwrap()
}

/// The frontends that have stale connections, each with the number of endpoints that may answer.
fn stale(before: Option<&ServicePlan>, after: Option<&ServicePlan>) -> Vec<(String, usize)> {
    let node = node();
    let mut flows = StaleFlows::new(&node);
    flows.add(before, after);
    let mut found: Vec<_> =
        flows.allowed.iter().map(|(frontend, allowed)| (frontend.to_string(), allowed.len())).collect();
    found.sort();
    found
}

fn at(frontends: &[(&str, usize)]) -> Vec<(String, usize)> {
    frontends.iter().map(|(frontend, allowed)| ((*frontend).to_owned(), *allowed)).collect()
}

#[test]
fn connections_to_an_endpoint_that_is_gone_are_stale_on_every_frontend() {
    let (two, one) = (plan(Protocol::Udp, &[1, 2], true), plan(Protocol::Udp, &[2], true));
    let expected = at(&[("10.96.0.53:53", 1), ("192.0.2.1:30053", 1), ("203.0.113.7:53", 1)]);
    assert_eq!(stale(Some(&two), Some(&one)), expected);
    assert_eq!(stale(Some(&one), Some(&two)), [], "an endpoint more makes nothing stale");
    assert_eq!(stale(None, Some(&two)), [], "there was nothing before");
}

#[test]
fn all_connections_of_a_service_or_address_that_is_gone_are_stale() {
    let (wide, narrow) = (plan(Protocol::Udp, &[1], true), plan(Protocol::Udp, &[1], false));
    let all = at(&[("10.96.0.53:53", 0), ("192.0.2.1:30053", 0), ("203.0.113.7:53", 0)]);
    assert_eq!(stale(Some(&wide), None), all);
    assert_eq!(stale(Some(&wide), Some(&narrow)), at(&[("203.0.113.7:53", 0)]));
}

#[test]
fn tcp_connections_end_by_themselves() {
    assert_eq!(stale(Some(&plan(Protocol::Tcp, &[1], true)), None), []);
}
