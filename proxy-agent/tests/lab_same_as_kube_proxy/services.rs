//! Generated Services: every field that changes what a node does with one.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use isp_dataplane::model::{Endpoint, Service, ServiceName, ServicePort, Target, TrafficPolicy};
use isp_dataplane::nft::{Family, Protocol};
use isp_testkit::random::Random;

use crate::addresses::{
    FAMILIES, NODE, OTHER_NODE, PODS, PRIMARY, ZONE, cluster_ip, external, only, outside, pod, range,
};
use crate::clients::{PARTNERS, STRANGERS};
use crate::endpoints::PORTS;

/// The namespace of all Services.
pub(crate) const NAMESPACE: &str = "same";
/// Services with session affinity are remembered this long, or for the default of three hours.
pub(crate) const SHORT_AFFINITY: u32 = 3;
const LONG_AFFINITY: u32 = 10_800;
/// Each Service has so many external addresses for itself.
const ADDRESSES: u8 = 8;
/// A Service's place decides its addresses and ports; there are this many.
pub(crate) const PLACES: u8 = 24;

/// `spec.type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    ClusterIp,
    NodePort,
    LoadBalancer,
}

/// A generated Service with its EndpointSlices.
#[derive(Clone, Debug)]
pub(crate) struct Generated {
    pub(crate) name: String,
    pub(crate) kind: Type,
    /// The Service as the data plane sees it, with the endpoints of all its slices.
    pub(crate) service: Service,
    /// The source ranges as they are written, with white space.
    pub(crate) written_ranges: Vec<String>,
    /// Addresses of the load balancer with `ipMode: Proxy`.
    pub(crate) proxied_ips: Vec<IpAddr>,
    pub(crate) health_check_node_port: Option<u16>,
    pub(crate) traffic_distribution: Option<&'static str>,
    pub(crate) publish_not_ready: bool,
    pub(crate) slices: Vec<Slice>,
}

/// A generated EndpointSlice.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    pub(crate) family: Family,
    /// The places of the Service's ports that it has, with their numbers.
    pub(crate) ports: Vec<(usize, u16)>,
    /// The endpoints; their port does not count.
    pub(crate) endpoints: Vec<Endpoint>,
}

impl Generated {
    pub(crate) fn full_name(&self) -> Arc<ServiceName> {
        Arc::new(ServiceName { namespace: NAMESPACE.to_owned(), name: self.name.clone() })
    }

    /// Adds the endpoints of the slices to the ports, in the order of the slices.
    pub(crate) fn with_slices(mut self, slices: Vec<Slice>) -> Self {
        for slice in &slices {
            for (place, number) in &slice.ports {
                let endpoints = slice.endpoints.iter().map(|endpoint| Endpoint {
                    target: Target { port: *number, ..endpoint.target },
                    ..endpoint.clone()
                });
                self.service.ports[*place].endpoints.extend(endpoints);
            }
        }
        Self { slices, ..self }
    }
}

/// A range in the data plane's form.
pub(crate) fn prefix(range: &str) -> IpNet {
    range.trim().parse::<IpNet>().unwrap().trunc()
}

/// Addresses whose endpoints have no node. An address has one in all Services or in none.
pub(crate) fn without_node(dice: &mut Random) -> Vec<IpAddr> {
    FAMILIES
        .iter()
        .flat_map(|family| places(*family))
        .map(|(address, _)| address)
        .filter(|_| dice.once_in(10))
        .collect()
}

/// The Service at a place.
pub(crate) fn generate(dice: &mut Random, place: u8, without_node: &[IpAddr]) -> Generated {
    let kind = dice.pick(&[Type::ClusterIp, Type::NodePort, Type::LoadBalancer, Type::LoadBalancer]);
    let [v4, v6] = FAMILIES;
    let families = dice.pick(&[vec![v4], vec![v6], vec![v4, v6], vec![v4, v6], vec![v6, v4]]);
    let is_balanced = kind == Type::LoadBalancer;
    let external_ips = if dice.once_in(3) { addresses(dice, place, &[3, 4]) } else { Vec::new() };
    // Two neighbours share an address; their ports differ.
    let shared = both((place & !1) * ADDRESSES + 5);
    let load_balancer_ips = match dice.below(4) {
        _ if !is_balanced => Vec::new(),
        0 => shared.to_vec(),
        1 => [shared.to_vec(), addresses(dice, place, &[0])].concat(),
        _ => addresses(dice, place, &[0, 1]),
    };
    let proxied_ips = if is_balanced && dice.once_in(4) { addresses(dice, place, &[2]) } else { Vec::new() };
    let written_ranges = if is_balanced && dice.once_in(2) { source_ranges(dice) } else { Vec::new() };
    let is_external = kind != Type::ClusterIp || !external_ips.is_empty();
    let external_policy = if is_external { policy(dice, 2) } else { TrafficPolicy::Cluster };
    let has_node_ports = kind == Type::NodePort || is_balanced && !dice.once_in(4);
    let affinity = dice.once_in(3).then(|| dice.pick(&[SHORT_AFFINITY, LONG_AFFINITY]));
    let service = Service {
        created: 0,
        cluster_ips: families.iter().map(|family| cluster_ip(*family, place)).collect(),
        external_ips,
        load_balancer_ips,
        source_ranges: written_ranges.iter().map(|range| prefix(range)).collect(),
        internal_policy: policy(dice, 3),
        external_policy,
        affinity,
        ports: ports(dice, place, has_node_ports),
    };
    let is_checked = is_balanced && external_policy == TrafficPolicy::Local;
    let slices =
        families.iter().flat_map(|family| slices(dice, *family, service.ports.len(), without_node)).collect();
    let generated = Generated {
        name: format!("s{place}"),
        kind,
        service,
        written_ranges,
        proxied_ips,
        health_check_node_port: is_checked.then(|| 31_000 + u16::from(place)),
        traffic_distribution: dice.pick(&[None, Some("PreferSameZone"), Some("PreferSameNode")]),
        publish_not_ready: dice.once_in(2),
        slices: Vec::new(),
    };
    generated.with_slices(slices)
}

fn policy(dice: &mut Random, local_once_in: usize) -> TrafficPolicy {
    if dice.once_in(local_once_in) { TrafficPolicy::Local } else { TrafficPolicy::Cluster }
}

fn both(last: u8) -> [IpAddr; 2] {
    FAMILIES.map(|family| external(family, last))
}

/// Some of a place's external addresses, of both families.
fn addresses(dice: &mut Random, place: u8, numbers: &[u8]) -> Vec<IpAddr> {
    let all: Vec<IpAddr> = numbers.iter().flat_map(|number| both(place * ADDRESSES + number)).collect();
    dice.some(&all, all.len())
}

fn source_ranges(dice: &mut Random) -> Vec<String> {
    let of = |family| {
        [
            range(outside(family, PARTNERS), 26, 122),
            range(outside(family, STRANGERS), 26, 122),
            range(outside(family, 0), 24, 64),
            only(outside(family, PRIMARY)),
            range(pod(family, 0, 0), 16, 48),
            range(pod(family, 1, 0), 24, 64),
        ]
    };
    let mut ranges = dice.some(&FAMILIES.map(of).concat(), 4);
    if dice.once_in(8) {
        ranges.push(dice.pick(&["0.0.0.0/0", "::/0"]).to_owned());
    }
    // The API server accepts white space around ranges.
    ranges.into_iter().map(|range| if dice.once_in(4) { format!(" {range} ") } else { range }).collect()
}

/// One or two ports. Neighbours have other numbers, because they may share an address.
fn ports(dice: &mut Random, place: u8, has_node_ports: bool) -> Vec<ServicePort> {
    let numbers: [u16; 2] = if place.is_multiple_of(2) { [80, 443] } else { [8000, 8443] };
    let node_port = |index: u16| has_node_ports.then(|| 30_000 + u16::from(place) * 2 + index);
    let port = |protocol, port, index| ServicePort {
        protocol,
        port,
        node_port: node_port(index),
        endpoints: Vec::new(),
    };
    let [one, other] = dice.pick(&[
        [Protocol::Tcp, Protocol::Udp],
        [Protocol::Udp, Protocol::Tcp],
        [Protocol::Tcp, Protocol::Sctp],
        [Protocol::Sctp, Protocol::Udp],
    ]);
    match dice.below(4) {
        0 => vec![port(one, numbers[0], 0)],
        1 => vec![port(one, numbers[0], 0), port(one, numbers[1], 1)],
        // Both protocols on one number, also of the NodePort.
        2 => vec![port(one, numbers[0], 0), port(other, numbers[0], 0)],
        _ => vec![port(one, numbers[0], 0), port(other, numbers[1], 1)],
    }
}

/// The slices of a family: one or two, and sometimes one more with a terminating pod whose address
/// another pod has got.
fn slices(dice: &mut Random, family: Family, ports: usize, without_node: &[IpAddr]) -> Vec<Slice> {
    let numbers = dice.pick(&[PORTS, [PORTS[1], PORTS[0]], [PORTS[0], PORTS[0]]]);
    let all: Vec<(usize, u16)> = (0..ports).zip(numbers).collect();
    let hints = dice.below(4);
    let mut endpoints: Vec<Endpoint> = dice
        .some(&places(family), 5)
        .into_iter()
        .map(|(address, node)| {
            endpoint(dice, address, Some(node).filter(|_| !without_node.contains(&address)), hints)
        })
        .collect();
    let rest = endpoints.split_off(dice.below(endpoints.len() + 1));
    let mut slices = vec![Slice { family, ports: all.clone(), endpoints }];
    if !rest.is_empty() {
        // A slice may lack a port.
        let lacks = dice.once_in(4);
        let ports = if lacks { all[..1].to_vec() } else { all.clone() };
        slices.push(Slice { family, ports, endpoints: rest });
    }
    let first = slices.iter().flat_map(|slice| &slice.endpoints).find(|each| !each.terminating).cloned();
    if let Some(twin) = first.filter(|_| dice.once_in(4)) {
        let twin = Endpoint { terminating: true, ready: false, serving: dice.once_in(2), ..twin };
        slices.push(Slice { family, ports: all, endpoints: vec![twin] });
    }
    slices
}

/// Where endpoints can be: their address and their node.
fn places(family: Family) -> Vec<(IpAddr, &'static str)> {
    let here = PODS.map(|last| (pod(family, 1, last), NODE));
    let elsewhere = [(pod(family, 2, 5), "n2"), (pod(family, 2, 6), "n2"), (pod(family, 3, 5), "n3")];
    // On the host network of their node.
    let hosts = [(outside(family, PRIMARY), NODE), (outside(family, OTHER_NODE), "n2")];
    here.into_iter().chain(elsewhere).chain(hosts).collect()
}

fn endpoint(dice: &mut Random, address: IpAddr, node: Option<&str>, hints: usize) -> Endpoint {
    let terminating = dice.once_in(4);
    let names: [Arc<str>; 3] = [NODE.into(), "n2".into(), "n3".into()];
    let zones: [Arc<str>; 3] = [ZONE.into(), "z2".into(), "z3".into()];
    Endpoint {
        target: Target { address, port: 0 },
        ready: if terminating { dice.once_in(20) } else { !dice.once_in(4) },
        serving: !dice.once_in(3),
        terminating,
        node: node.map(Into::into),
        zone_hints: if hints & 1 != 0 && !dice.once_in(12) { some_hints(dice, &zones) } else { Vec::new() },
        node_hints: if hints & 2 != 0 && !dice.once_in(12) { some_hints(dice, &names) } else { Vec::new() },
    }
}

fn some_hints(dice: &mut Random, names: &[Arc<str>]) -> Vec<Arc<str>> {
    let mut hints = dice.some(names, 2);
    if hints.is_empty() {
        hints.push(dice.pick(names));
    }
    hints
}

/// A Service that tells that everything before it has arrived.
pub(crate) fn marker(number: u8) -> Generated {
    marker_with(number, &|family| vec![remote(pod(family, 2, 5), &[])])
}

/// A Service that tells whether a proxy knows its node's zone: one endpoint is for this zone, the
/// other for another one.
pub(crate) fn zone_marker() -> Generated {
    marker_with(0, &|family| {
        vec![remote(in_zone(family), &[ZONE.into()]), remote(pod(family, 3, 5), &["z9".into()])]
    })
}

/// The endpoint of the zone's marker for this zone.
pub(crate) fn in_zone(family: Family) -> IpAddr {
    pod(family, 2, 5)
}

/// A ready endpoint on another node.
fn remote(address: IpAddr, zone_hints: &[Arc<str>]) -> Endpoint {
    Endpoint {
        target: Target { address, port: 0 },
        ready: true,
        serving: true,
        terminating: false,
        node: Some("n2".into()),
        zone_hints: zone_hints.to_vec(),
        node_hints: Vec::new(),
    }
}

fn marker_with(number: u8, endpoints: &dyn Fn(Family) -> Vec<Endpoint>) -> Generated {
    let port = ServicePort { protocol: Protocol::Tcp, port: 80, node_port: None, endpoints: Vec::new() };
    let slice = |family| Slice { family, ports: vec![(0, PORTS[0])], endpoints: endpoints(family) };
    let generated = Generated {
        name: format!("marker-{number}"),
        kind: Type::ClusterIp,
        service: Service {
            cluster_ips: FAMILIES.map(|family| cluster_ip(family, 200 + number)).to_vec(),
            ports: vec![port],
            ..Service::default()
        },
        written_ranges: Vec::new(),
        proxied_ips: Vec::new(),
        health_check_node_port: None,
        traffic_distribution: None,
        publish_not_ready: false,
        slices: Vec::new(),
    };
    generated.with_slices(FAMILIES.map(slice).to_vec())
}
