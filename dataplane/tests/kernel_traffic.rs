//! Real connections through the table in the real kernel end where the trace says.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod common;

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader},
    net::{IpAddr, SocketAddr},
    process::{Child, Stdio},
    sync::Arc,
    thread,
};

use common::{endpoint, ip, name, range};
use isp_dataplane::{
    model::{
        Endpoint, LocalPods, Node, NodePortAddresses, Service, ServiceName, ServicePort, Target,
        TrafficPolicy,
    },
    nft::{Family, Protocol},
    text::render,
    trace::{Outcome, Packet, trace},
};
use isp_lab::{End, NetNs};

/// A machine outside, a pod of this node, and this node itself.
const CLIENTS: [&str; 3] = ["outside", "pod", "node"];

/// A node between a machine outside, one of its own pods, and a pod of another node.
fn world() -> NetNs {
    let world = NetNs::new(&["outside", "node", "pod", "remote"]).unwrap();
    let cable = |place, interface, own: &[&str], other: &[&str]| {
        let ours = End { place: "node", interface, addresses: own };
        world.cable(ours, End { place, interface: "eth0", addresses: other }).unwrap();
    };
    cable("outside", "eth0", &["192.0.2.1/24", "2001:db8::1/64"], &["192.0.2.100/24", "2001:db8::100/64"]);
    cable("pod", "cni0", &["10.244.1.1/24", "fd00:244:1::1/64"], &["10.244.1.5/24", "fd00:244:1::5/64"]);
    cable("remote", "other", &["10.244.2.1/24", "fd00:244:2::1/64"], &["10.244.2.5/24", "fd00:244:2::5/64"]);
    let gateways = [
        ("outside", "192.0.2.1", "2001:db8::1"),
        ("pod", "10.244.1.1", "fd00:244:1::1"),
        ("remote", "10.244.2.1", "fd00:244:2::1"),
        ("node", "192.0.2.100", "2001:db8::100"),
    ];
    for (place, v4, v6) in gateways {
        world.check(place, &["ip", "route", "add", "default", "via", v4], "").unwrap();
        world.check(place, &["ip", "route", "add", "default", "via", v6], "").unwrap();
    }
    let settings = [
        "net.ipv4.ip_forward=1",
        "net.ipv6.conf.all.forwarding=1",
        "net.ipv4.conf.all.rp_filter=0",
        // Every rejected connection is to be told so.
        "net.ipv4.icmp_ratelimit=0",
        "net.ipv6.icmp.ratelimit=0",
    ];
    for setting in settings {
        world.check("node", &["sysctl", "-qw", setting], "").unwrap();
    }
    world
}

fn node(local_pods: LocalPods) -> Node {
    let addresses =
        ["192.0.2.1", "10.244.1.1", "10.244.2.1", "2001:db8::1", "fd00:244:1::1", "fd00:244:2::1"];
    Node {
        name: "n1".into(),
        zone: None,
        addresses: addresses.map(ip).to_vec(),
        local_pods,
        node_port_addresses: NodePortAddresses::Primary,
        masquerade_all: false,
    }
}

/// Both families of an endpoint for HTTP, named by the IPv4 address.
fn both(v4: &str, v6: &str, node: &str) -> [Endpoint; 2] {
    [endpoint(v4, node), endpoint(v6, node)]
}

fn here() -> [Endpoint; 2] {
    both("10.244.1.5", "fd00:244:1::5", "n1")
}

fn elsewhere() -> [Endpoint; 2] {
    both("10.244.2.5", "fd00:244:2::5", "n2")
}

fn on_the_host() -> [Endpoint; 2] {
    both("192.0.2.1", "2001:db8::1", "n1")
}

/// A Service with a number in all its addresses, for HTTP and for UDP.
fn service(number: u16, endpoints: &[Endpoint]) -> Service {
    let udp = |each: &Endpoint| {
        let mut each = each.clone();
        each.target.port = 8082;
        each
    };
    let http = ServicePort {
        protocol: Protocol::Tcp,
        port: 80,
        node_port: Some(30000 + number),
        endpoints: endpoints.to_vec(),
    };
    let ports = vec![
        ServicePort {
            protocol: Protocol::Udp,
            endpoints: endpoints.iter().map(udp).collect(),
            ..http.clone()
        },
        http,
    ];
    let last = u8::try_from(number).unwrap();
    Service {
        cluster_ips: vec![[10, 96, 0, last].into(), [0xfd00, 0x96, 0, 0, 0, 0, 0, number].into()],
        load_balancer_ips: vec![[198, 51, 100, last].into(), [0x2001, 0xdb8, 1, 0, 0, 0, 0, number].into()],
        ports,
        ..Service::default()
    }
}

fn services() -> Vec<(Arc<ServiceName>, Service)> {
    let local = |service| Service { external_policy: TrafficPolicy::Local, ..service };
    let node_local = |service| Service { internal_policy: TrafficPolicy::Local, ..service };
    let spread = [here(), elsewhere()].concat();
    let ranges = vec![range("192.0.2.64/26"), range("2001:db8::100/120")];
    let services = [
        service(1, &spread),
        local(service(2, &spread)),
        local(service(3, &elsewhere())),
        node_local(service(4, &spread)),
        node_local(service(5, &elsewhere())),
        service(6, &[]),
        local(service(7, &[])),
        local(service(8, &here())),
        service(9, &on_the_host()),
        Service { source_ranges: ranges, ..service(10, &spread) },
        local(service(11, &[on_the_host(), elsewhere()].concat())),
    ];
    (1..).zip(services).map(|(number, service)| (name(&format!("s{number}")), service)).collect()
}

/// The `echo` application in a namespace.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(world: &NetNs, place: &str) -> Server {
    let echo = isp_lab::echo_program().unwrap();
    let mut server = world.command(place, &[echo.to_str().unwrap(), "serve"]);
    let mut server = server.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("listening"), "{line}");
    Server(server)
}

/// What became of a real connection; several outcomes can look the same to the client.
fn connect(world: &NetNs, place: &str, packet: &Packet) -> Vec<Outcome> {
    let echo = isp_lab::echo_program().unwrap();
    let protocol = if packet.protocol == Protocol::Udp { "udp" } else { "http" };
    let target = SocketAddr::new(packet.destination, packet.port).to_string();
    // Over IPv6 the kernel's TCP heeds the ICMP error only when it sends its first packet again,
    // after a second.
    let ask = [echo.to_str().unwrap(), "ask", protocol, "--timeout", "2500", target.as_str()];
    let answer = world.exec(place, &ask, "").unwrap().stdout;
    let field = |name: &str| {
        let (_, rest) = answer.split_once(&format!("\"{name}\":\""))?;
        Some(rest.split('"').next().unwrap().to_owned())
    };
    match field("error").as_deref() {
        Some("refused") => return vec![Outcome::Rejected],
        Some("timed out") => return vec![Outcome::Dropped],
        // The kernel tells a local program at once that its packet did not leave. A datagram is
        // gone before the ICMP error comes.
        Some("failed") if answer.contains("Operation not permitted") && protocol == "udp" => {
            return vec![Outcome::Rejected, Outcome::Dropped];
        }
        Some("failed") if answer.contains("Operation not permitted") => return vec![Outcome::Dropped],
        Some(other) => panic!("{place} to {target}: {other}: {answer}"),
        None => {}
    }
    let field = |name| field(name).unwrap_or_else(|| panic!("{answer}"));
    let local: SocketAddr = field("local").parse().unwrap();
    let peer: IpAddr = field("peerIp").parse().unwrap();
    let to = Target { address: local.ip(), port: local.port() };
    // A node that reaches itself has one of its own addresses before and after masquerading.
    let own = packet.interface.is_none() && to.address == packet.source;
    vec![Outcome::Redirected { to, masqueraded: own || peer != packet.source }]
}

fn packet(place: &str, family: Family, destination: IpAddr, protocol: Protocol, port: u16) -> Packet {
    let (v4, v6, interface) = match place {
        "outside" => ("192.0.2.100", "2001:db8::100", Some("eth0")),
        "pod" => ("10.244.1.5", "fd00:244:1::5", Some("cni0")),
        _ => ("192.0.2.1", "2001:db8::1", None),
    };
    let source = ip(if family == Family::Ip { v4 } else { v6 });
    Packet { source, destination, protocol, port, interface: interface.map(str::to_owned) }
}

/// Packets of a client to every frontend of the Services, and to a port that a ClusterIP lacks.
fn packets(place: &str, family: Family) -> Vec<Packet> {
    let mut packets = Vec::new();
    let of_family = |addresses: &[IpAddr]| addresses.iter().copied().find(|each| Family::of(*each) == family);
    for (_, service) in services() {
        for port in &service.ports {
            let node = ip(if family == Family::Ip { "192.0.2.1" } else { "2001:db8::1" });
            let mut to =
                |address, number| packets.push(packet(place, family, address, port.protocol, number));
            to(of_family(&service.cluster_ips).unwrap(), port.port);
            to(of_family(&service.load_balancer_ips).unwrap(), port.port);
            to(node, port.node_port.unwrap());
        }
    }
    let cluster_ip = of_family(&services()[0].1.cluster_ips).unwrap();
    packets.push(packet(place, family, cluster_ip, Protocol::Tcp, 81));
    packets
}

/// Compares the trace with the kernel for every client and frontend.
fn compare(local_pods: &LocalPods, family: Family) {
    let world = world();
    let _servers = ["pod", "remote", "node"].map(|place| serve(&world, place));
    let node = node(local_pods.clone());
    let plane = common::plane(family, &node, &services());
    world.check("node", &["nft", "-f", "-"], &render(&plane.table(), &plane.elements())).unwrap();
    let ruleset = common::ruleset(&plane);
    let check = |place: &str, packet: &Packet| {
        let stories = trace(&ruleset, &node.addresses, packet).unwrap();
        let expected: BTreeSet<Outcome> = stories.iter().map(|story| story.outcome).collect();
        let found = connect(&world, place, packet);
        let told = stories[0].tell(ruleset.table()).join("\n  ");
        let wrong = format!("{place}, {packet:?}: {found:?}, expected {expected:?}\n  {told}");
        (!found.iter().any(|each| expected.contains(each))).then_some(wrong)
    };
    let all: Vec<_> = CLIENTS
        .iter()
        .flat_map(|place| packets(place, family).into_iter().map(move |each| (*place, each)))
        .collect();
    let mut wrong = Vec::new();
    // Most of the time goes by waiting for answers that do not come.
    for some in all.chunks(16) {
        thread::scope(|scope| {
            let checks: Vec<_> =
                some.iter().map(|(place, packet)| scope.spawn(|| check(place, packet))).collect();
            wrong.extend(checks.into_iter().filter_map(|each| each.join().unwrap()));
        });
    }
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

#[test]
fn connections_over_ipv4_end_where_the_trace_says() {
    compare(&LocalPods::Sources(vec![range("10.244.1.0/24")]), Family::Ip);
}

#[test]
fn connections_over_ipv6_end_where_the_trace_says() {
    compare(&LocalPods::Sources(vec![range("fd00:244:1::/64")]), Family::Ip6);
}

#[test]
fn pods_are_recognized_by_their_interface_before_and_after_routing() {
    let bridge = isp_dataplane::nft::InterfacePattern::Name("cni0".to_owned());
    compare(&LocalPods::Interface(bridge), Family::Ip);
}

/// A client stays with its endpoint, whichever address of the port it uses; also with one on the
/// host network, which packets reach without leaving the node.
#[test]
fn a_client_stays_with_its_endpoint() {
    let world = world();
    let _servers = ["pod", "remote", "node"].map(|place| serve(&world, place));
    let node = node(LocalPods::Sources(vec![range("10.244.1.0/24")]));
    let endpoints = [here(), elsewhere(), on_the_host()].concat();
    let sticky = Service { affinity: Some(600), ..service(1, &endpoints) };
    let plane = common::plane(Family::Ip, &node, &[(name("sticky"), sticky)]);
    world.check("node", &["nft", "-f", "-"], &render(&plane.table(), &plane.elements())).unwrap();
    let frontends = [("10.96.0.1", 80), ("198.51.100.1", 80), ("192.0.2.1", 30001)];
    let mut endpoints = BTreeSet::new();
    for _ in 0..20 {
        let mut reached = BTreeSet::new();
        for (address, port) in [frontends, frontends].concat() {
            let packet = packet("outside", Family::Ip, ip(address), Protocol::Tcp, port);
            match connect(&world, "outside", &packet).as_slice() {
                [Outcome::Redirected { to, .. }] => reached.insert(*to),
                other => panic!("{packet:?}: {other:?}"),
            };
        }
        assert_eq!(reached.len(), 1, "one client reached several endpoints: {reached:?}");
        endpoints.extend(reached);
        let forget = ["nft", "flush", "map", "ip", "ingress-source-preserve", "affinity"];
        world.check("node", &forget, "").unwrap();
    }
    assert_eq!(endpoints.len(), 3, "every endpoint is chosen at times: {endpoints:?}");
}
