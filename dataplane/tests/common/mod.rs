//! Values that several tests use.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "each test program uses a part of it; helpers of tests fail as tests do"
)]

use std::{net::IpAddr, sync::Arc};

use ipnet::IpNet;
use isp_dataplane::{
    compile::compile,
    model::{
        Endpoint, LocalPods, Node, NodePortAddresses, Service, ServiceName, ServicePort, Target,
        TrafficPolicy, View,
    },
    nft::{Family, Name, Protocol},
    plane::Plane,
    rules::Settings,
    ruleset::Ruleset,
};

pub(crate) fn ip(address: &str) -> IpAddr {
    address.parse().unwrap()
}

pub(crate) fn range(text: &str) -> IpNet {
    text.parse().unwrap()
}

pub(crate) fn target(address: &str, port: u16) -> Target {
    Target { address: ip(address), port }
}

pub(crate) fn settings(family: Family) -> Settings {
    Settings { table: Name::constant("ingress-source-preserve"), family, ahead: 5, remembered_clients: 65536 }
}

pub(crate) fn name(name: &str) -> Arc<ServiceName> {
    Arc::new(ServiceName { namespace: "shop".to_owned(), name: name.to_owned() })
}

/// The node `n1` with pods in 10.244.1.0/24 and `fd00:244:1::/64`.
pub(crate) fn node() -> Node {
    Node {
        name: "n1".into(),
        zone: Some("z1".into()),
        addresses: vec![ip("192.0.2.1"), ip("10.244.1.1"), ip("2001:db8::1")],
        local_pods: LocalPods::Sources(vec![range("10.244.1.0/24"), range("fd00:244:1::/64")]),
        node_port_addresses: NodePortAddresses::Primary,
        masquerade_all: false,
    }
}

/// A ready endpoint.
pub(crate) fn endpoint(address: &str, node: &str) -> Endpoint {
    Endpoint {
        target: target(address, 8080),
        ready: true,
        serving: true,
        terminating: false,
        node: Some(node.into()),
        zone_hints: Vec::new(),
        node_hints: Vec::new(),
    }
}

/// A port 80 with the given endpoints.
pub(crate) fn port(endpoints: Vec<Endpoint>) -> ServicePort {
    ServicePort { protocol: Protocol::Tcp, port: 80, node_port: None, endpoints }
}

/// One endpoint on this node and one on another, in both families.
pub(crate) fn spread() -> Vec<Endpoint> {
    vec![
        endpoint("10.244.1.5", "n1"),
        endpoint("10.244.2.5", "n2"),
        endpoint("fd00:244:1::5", "n1"),
        endpoint("fd00:244:2::5", "n2"),
    ]
}

/// A Service of type LoadBalancer with every kind of address.
pub(crate) fn balanced() -> Service {
    Service {
        cluster_ips: vec![ip("10.96.0.10"), ip("fd00:96::10")],
        external_ips: vec![ip("203.0.113.7")],
        load_balancer_ips: vec![ip("198.51.100.20"), ip("2001:db8:ffff::20")],
        ports: vec![ServicePort { node_port: Some(30080), ..port(spread()) }],
        ..Service::default()
    }
}

/// Services that together use every set of the table.
pub(crate) fn examples() -> Vec<(Arc<ServiceName>, Service)> {
    let gateway = Service {
        external_policy: TrafficPolicy::Local,
        source_ranges: vec![range("198.51.100.0/24"), range("2001:db8:1::/48")],
        affinity: Some(10800),
        ..balanced()
    };
    let dns = Service {
        cluster_ips: vec![ip("10.96.0.53"), ip("fd00:96::53")],
        internal_policy: TrafficPolicy::Local,
        ports: vec![
            ServicePort { protocol: Protocol::Udp, port: 53, ..port(spread()) },
            ServicePort { protocol: Protocol::Tcp, port: 53, ..port(spread()) },
        ],
        ..Service::default()
    };
    let idle = Service {
        cluster_ips: vec![ip("10.96.0.99"), ip("fd00:96::99")],
        ports: vec![port(Vec::new())],
        ..Service::default()
    };
    vec![(name("gateway"), gateway), (name("dns"), dns), (name("idle"), idle)]
}

/// A plane with Services of which the node sees everything.
pub(crate) fn plane(family: Family, node: &Node, services: &[(Arc<ServiceName>, Service)]) -> Plane {
    let mut plane = Plane::new(settings(family), node.clone());
    for (name, service) in services {
        plane.set(name, compile(service, node, View::Full, family));
    }
    plane
}

/// The kernel's side of a plane.
pub(crate) fn ruleset(plane: &Plane) -> Ruleset {
    Ruleset::new(plane.table(), plane.elements()).unwrap()
}
