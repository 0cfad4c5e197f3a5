//! Generated nodes, Services and packets. Addresses come from small pools, so that packets hit
//! frontends, endpoints hit clients and Services hit each other.

use std::{net::IpAddr, sync::Arc};

use ipnet::IpNet;
use isp_dataplane::{
    model::{
        Endpoint, LocalPods, Node, NodePortAddresses, Service, ServicePort, Target, TrafficPolicy, View,
    },
    nft::{Family, InterfacePattern, Protocol},
    trace::Packet,
};

use crate::{common, oracle::Seen};

/// Random numbers from a seed (`SplitMix64`).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.number() % end as u64).unwrap()
    }

    /// True once in so many times.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn of<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())].clone()
    }

    /// Some of the values, in order.
    fn some<T: Clone>(&mut self, values: &[T], most: usize) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| self.of(values)).collect()
    }
}

fn address(family: Family, v4: [u8; 4], v6: [u16; 4]) -> IpAddr {
    match family {
        Family::Ip => v4.into(),
        Family::Ip6 => [v6[0], v6[1], v6[2], 0, 0, 0, 0, v6[3]].into(),
    }
}

fn node_address(family: Family, last: u8) -> IpAddr {
    address(family, [192, 0, 2, last], [0x2001, 0xdb8, 0, last.into()])
}

fn pod(family: Family, node: u8, last: u8) -> IpAddr {
    address(family, [10, 244, node, last], [0xfd00, 0x244, node.into(), last.into()])
}

fn cluster_ip(family: Family, last: u8) -> IpAddr {
    address(family, [10, 96, 0, last], [0xfd00, 0x96, 0, last.into()])
}

fn outside(family: Family, last: u8) -> IpAddr {
    address(family, [198, 51, 100, last], [0x2001, 0xdb8, 1, last.into()])
}

pub(crate) fn node(dice: &mut Dice, family: Family) -> Node {
    let range = |address, v4, v6| IpNet::new(address, if family == Family::Ip { v4 } else { v6 }).unwrap();
    let pods = range(pod(family, 1, 0), 24, 48);
    let cluster = range(pod(family, 0, 0), 16, 32);
    let local_pods = match dice.below(6) {
        0 => LocalPods::Unknown,
        1 => LocalPods::Interface(InterfacePattern::Name("cni0".to_owned())),
        2 => LocalPods::Interface(InterfacePattern::Prefix("cni".to_owned())),
        3 => LocalPods::Sources(vec![cluster]),
        _ => LocalPods::Sources(vec![pods]),
    };
    let node_port_addresses = match dice.below(4) {
        0 => NodePortAddresses::Within(Vec::new()),
        1 => NodePortAddresses::Within(vec![range(node_address(family, 2), 32, 128)]),
        _ => NodePortAddresses::Primary,
    };
    Node {
        name: "n1".into(),
        zone: (!dice.once_in(4)).then(|| "z1".into()),
        addresses: vec![node_address(family, 1), node_address(family, 2), pod(family, 1, 1)],
        local_pods,
        node_port_addresses,
        masquerade_all: dice.once_in(6),
    }
}

fn endpoint(dice: &mut Dice, family: Family, hints: usize) -> Endpoint {
    let on = dice.below(3);
    let names: [Arc<str>; 3] = ["n1".into(), "n2".into(), "n3".into()];
    let zones: [Arc<str>; 3] = ["z1".into(), "z2".into(), "z3".into()];
    let last = u8::try_from(5 + dice.below(3)).unwrap();
    let number = u8::try_from(on + 1).unwrap();
    // Some endpoints are on the host network of their node.
    let address = if dice.once_in(6) { node_address(family, number) } else { pod(family, number, last) };
    let terminating = dice.once_in(4);
    Endpoint {
        target: Target { address, port: dice.of(&[8080, 8081, 80]) },
        ready: !terminating && !dice.once_in(4) || dice.once_in(20),
        serving: !dice.once_in(3),
        terminating,
        node: (!dice.once_in(10)).then(|| Arc::clone(&names[on])),
        zone_hints: if hints & 1 != 0 && !dice.once_in(12) { vec![dice.of(&zones)] } else { Vec::new() },
        node_hints: if hints & 2 != 0 && !dice.once_in(12) { vec![dice.of(&names)] } else { Vec::new() },
    }
}

fn policy(dice: &mut Dice) -> TrafficPolicy {
    dice.of(&[TrafficPolicy::Cluster, TrafficPolicy::Local])
}

pub(crate) fn service(dice: &mut Dice, family: Family, number: u8) -> Service {
    // Some load balancers have the addresses of nodes.
    let nodes = [node_address(family, 3)];
    let vips: Vec<IpAddr> = (20..24).map(|last| outside(family, last)).chain(nodes).collect();
    let ranges = [
        IpNet::from(outside(family, 100)),
        IpNet::new(outside(family, 96), if family == Family::Ip { 28 } else { 124 }).unwrap(),
        IpNet::new(pod(family, 0, 0), if family == Family::Ip { 16 } else { 32 }).unwrap(),
        IpNet::new(node_address(family, 0), if family == Family::Ip { 24 } else { 64 }).unwrap(),
        IpNet::new(outside(family, 0), 0).unwrap(),
    ];
    let mut ports = Vec::new();
    for index in 0..=dice.below(2) {
        let hints = dice.below(4);
        let endpoints = (0..dice.below(7)).map(|_| endpoint(dice, family, hints)).collect();
        ports.push(ServicePort {
            protocol: dice.of(&Protocol::ALL),
            port: dice.of(&[80, 443]),
            node_port: dice.once_in(2).then(|| 30000 + u16::from(number) * 2 + u16::try_from(index).unwrap()),
            endpoints,
        });
    }
    // The API server refuses a Service with the same port twice.
    if let [first, second] = ports.as_slice()
        && (first.protocol, first.port) == (second.protocol, second.port)
    {
        ports.pop();
    }
    Service {
        created: i64::try_from(dice.below(3)).unwrap(),
        cluster_ips: if dice.once_in(30) { Vec::new() } else { vec![cluster_ip(family, number)] },
        external_ips: dice.some(&vips, 1),
        load_balancer_ips: dice.some(&vips, 2),
        source_ranges: if dice.once_in(3) { dice.some(&ranges, 3) } else { Vec::new() },
        internal_policy: if dice.once_in(3) { TrafficPolicy::Local } else { TrafficPolicy::Cluster },
        external_policy: policy(dice),
        affinity: dice.once_in(3).then(|| dice.of(&[600, 10800])),
        ports,
    }
}

/// Up to four Services, seen in different ways.
pub(crate) fn services(dice: &mut Dice, family: Family) -> Vec<Seen> {
    (1..=1 + u8::try_from(dice.below(4)).unwrap())
        .map(|number| Seen {
            name: common::name(&format!("s{number}")),
            service: service(dice, family, number),
            view: dice.of(&[View::Full, View::Full, View::Full, View::ClusterOnly, View::Hidden]),
        })
        .collect()
}

pub(crate) fn packet(dice: &mut Dice, family: Family) -> Packet {
    let (source, interface) = match dice.below(6) {
        0 => (node_address(family, 1), None),
        1 => (pod(family, 1, 1), None),
        2 => (pod(family, 1, u8::try_from(5 + dice.below(4)).unwrap()), Some("cni0")),
        3 => (pod(family, 2, 5), Some("eth0")),
        4 => (outside(family, u8::try_from(20 + dice.below(4)).unwrap()), Some("eth0")),
        _ => (outside(family, dice.of(&[100, 200])), Some("eth0")),
    };
    let number = u8::try_from(1 + dice.below(5)).unwrap();
    let (destination, port) = match dice.below(7) {
        0 | 1 => (cluster_ip(family, number), dice.of(&[80, 443, 8443])),
        2 | 3 => (outside(family, u8::try_from(20 + dice.below(4)).unwrap()), dice.of(&[80, 443])),
        4 => {
            let node = u8::try_from(1 + dice.below(2)).unwrap();
            (
                node_address(family, node),
                30000 + u16::from(number) * 2 + u16::try_from(dice.below(2)).unwrap(),
            )
        }
        5 => (node_address(family, 3), dice.of(&[80, 443])),
        _ => (pod(family, 1, 5), 8080),
    };
    let protocol = dice.of(&Protocol::ALL);
    Packet { source, destination, protocol, port, interface: interface.map(str::to_owned) }
}
