//! Real connections through the tables of the data plane.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use isp_dataplane::compile::compile;
use isp_dataplane::layout;
use isp_dataplane::model::{
    Endpoint, LocalPods, Node, NodePortAddresses, Service, ServiceName, ServicePort, Target, TrafficPolicy,
    View,
};
use isp_dataplane::netlink::{Batch, conntrack};
use isp_dataplane::nft::{Element, Family, Name, Operation, Protocol, Value};
use isp_dataplane::plane::Plane;
use isp_dataplane::rules::Settings;
use isp_dataplane::text;
use isp_kernel::{Conntrack, Found, Kernel};
use isp_lab::{End, NetNs};

use crate::inside::{inside, inside_world};
use crate::loading::found;
use crate::nft::{feed, nft};
use crate::raw;

const TABLE: Name = Name::constant("ingress-source-preserve");
const SERVERS: [&str; 2] = ["one", "two"];

/// A client and two servers around a node.
fn world() -> (NetNs, &'static str) {
    let world = NetNs::new(&["node", "client", "one", "two"]).unwrap();
    for (number, place) in ["client", "one", "two"].into_iter().enumerate() {
        let (v4, v6) = (format!("10.1.{number}"), format!("fd01:{number}:"));
        let addresses = |last: u8| [format!("{v4}.{last}/24"), format!("{v6}:{last}/64")];
        let (theirs, ours) = (addresses(2), addresses(1));
        world
            .cable(
                End { place, interface: "eth0", addresses: &[theirs[0].as_str(), theirs[1].as_str()] },
                End { place: "node", interface: place, addresses: &[ours[0].as_str(), ours[1].as_str()] },
            )
            .unwrap();
        for gateway in [format!("{v4}.1"), format!("{v6}:1")] {
            world.check(place, &["ip", "route", "add", "default", "via", &gateway], "").unwrap();
        }
    }
    // The node itself uses Services only if it has a route to them.
    for gateway in ["10.1.0.2", "fd01:0::2"] {
        world.check("node", &["ip", "route", "add", "default", "via", gateway], "").unwrap();
    }
    for setting in ["net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"] {
        world.check("node", &["sysctl", "-qw", setting], "").unwrap();
    }
    for server in SERVERS {
        let echo = isp_lab::echo_program().unwrap();
        let mut serve = world.command(server, &[echo.to_str().unwrap(), "serve"]);
        let mut serve = serve.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(serve.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("listening"), "{line}");
        // It ends with the namespaces.
        std::mem::forget(serve);
    }
    (world, "node")
}

fn server(family: Family, number: u8) -> IpAddr {
    match family {
        Family::Ip => format!("10.1.{number}.2").parse().unwrap(),
        Family::Ip6 => format!("fd01:{number}::2").parse().unwrap(),
    }
}

fn of(family: Family, v4: &str, v6: &str) -> IpAddr {
    match family {
        Family::Ip => v4.parse().unwrap(),
        Family::Ip6 => v6.parse().unwrap(),
    }
}

fn node() -> Node {
    Node {
        name: "node".into(),
        zone: None,
        addresses: vec!["10.1.0.1".parse().unwrap(), "fd01:0::1".parse().unwrap()],
        local_pods: LocalPods::Unknown,
        node_port_addresses: NodePortAddresses::Primary,
        masquerade_all: false,
    }
}

/// A Service of both families on port 80, with endpoints on this node.
fn service(protocol: Protocol, port: u16, external_policy: TrafficPolicy, servers: &[u8]) -> Service {
    let endpoints = Family::ALL.into_iter().flat_map(|family| {
        servers.iter().map(move |number| Endpoint {
            target: Target { address: server(family, *number), port },
            ready: true,
            serving: true,
            terminating: false,
            node: Some("node".into()),
            zone_hints: Vec::new(),
            node_hints: Vec::new(),
        })
    });
    Service {
        cluster_ips: Family::ALL.map(|family| of(family, "10.96.0.1", "fd96::1")).to_vec(),
        load_balancer_ips: Family::ALL.map(|family| of(family, "203.0.113.1", "2001:db8::1")).to_vec(),
        external_policy,
        ports: vec![ServicePort {
            protocol,
            port: 80,
            node_port: Some(30080),
            endpoints: endpoints.collect(),
        }],
        ..Service::default()
    }
}

fn name() -> Arc<ServiceName> {
    Arc::new(ServiceName { namespace: "shop".to_owned(), name: "web".to_owned() })
}

fn plane(family: Family, service: &Service) -> Plane {
    let settings = Settings { table: TABLE, family, ahead: 5, remembered_clients: 1000 };
    let mut plane = Plane::new(settings, node());
    plane.set(&name(), compile(service, &node(), View::Full, family));
    plane
}

fn load(kernel: &mut Kernel, planes: &[Plane]) {
    let tables: Vec<_> = planes.iter().map(|plane| (plane.table(), plane.elements())).collect();
    let tables: Vec<_> = tables.iter().map(|(table, elements)| (table, elements.as_slice())).collect();
    kernel.load(&tables).unwrap();
}

/// The answers to some requests of the client: the server's address, and the client's as it saw it.
fn ask(protocol: &str, target: SocketAddr) -> BTreeSet<(String, String)> {
    let echo = isp_lab::echo_program().unwrap();
    let mut ask = Command::new("nsenter");
    ask.args(["--net=/run/netns/client", "--"]).arg(echo).args(["ask", protocol, &target.to_string()]);
    let output = ask.args(["--count", "30", "--interval", "10"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{target}: {text}");
    let field = |line: &str, name: &str| {
        let start = line.find(&format!("\"{name}\":\"")).unwrap() + name.len() + 4;
        line[start..].split('"').next().unwrap().to_owned()
    };
    let ip = |socket: String| socket.parse::<SocketAddr>().unwrap().ip().to_string();
    text.lines().map(|line| (ip(field(line, "local")), field(line, "peerIp"))).collect()
}

#[test]
fn connections_reach_every_endpoint_with_the_clients_address_over_tcp_and_udp_in_both_families() {
    let name = "traffic::connections_reach_every_endpoint_with_the_clients_address_over_tcp_and_udp_in_both_families";
    inside_world(name, world, || {
        let mut kernel = Kernel::open().unwrap();
        kernel.own_tables();
        for (protocol, how, port) in [(Protocol::Tcp, "http", 8080), (Protocol::Udp, "udp", 8082)] {
            let service = service(protocol, port, TrafficPolicy::Local, &[1, 2]);
            load(&mut kernel, &Family::ALL.map(|family| plane(family, &service)));
            for family in Family::ALL {
                let client = server(family, 0).to_string();
                let both: BTreeSet<_> =
                    [1, 2].map(|number| (server(family, number).to_string(), client.clone())).into();
                for (address, port) in [
                    (of(family, "203.0.113.1", "2001:db8::1"), 80),
                    (of(family, "10.1.0.1", "fd01:0::1"), 30080),
                ] {
                    assert_eq!(ask(how, SocketAddr::new(address, port)), both);
                }
            }
        }
    });
}

#[test]
fn connections_to_a_service_for_the_whole_cluster_come_from_the_node() {
    inside_world("traffic::connections_to_a_service_for_the_whole_cluster_come_from_the_node", world, || {
        let mut kernel = Kernel::open().unwrap();
        let service = service(Protocol::Tcp, 8080, TrafficPolicy::Cluster, &[1]);
        load(&mut kernel, &Family::ALL.map(|family| plane(family, &service)));
        for family in Family::ALL {
            let masqueraded =
                (server(family, 1).to_string(), of(family, "10.1.1.1", "fd01:1::1").to_string());
            let target = SocketAddr::new(of(family, "203.0.113.1", "2001:db8::1"), 80);
            assert_eq!(ask("http", target), [masqueraded].into());
        }
    });
}

#[test]
fn a_client_with_session_affinity_is_remembered_until_it_is_forgotten() {
    inside_world(
        "traffic::a_client_with_session_affinity_is_remembered_until_it_is_forgotten",
        world,
        || {
            let mut kernel = Kernel::open().unwrap();
            let plain = service(Protocol::Tcp, 8080, TrafficPolicy::Local, &[1, 2]);
            let service = Service { affinity: Some(10_800), ..plain };
            for family in Family::ALL {
                let plane = plane(family, &service);
                load(&mut kernel, std::slice::from_ref(&plane));
                let target = SocketAddr::new(of(family, "203.0.113.1", "2001:db8::1"), 80);
                assert_eq!(ask("http", target).len(), 1);

                let table = plane.table();
                let affinity = table.set(&layout::AFFINITY).unwrap();
                let remembered = kernel.elements(&table, affinity).unwrap();
                let client = Value::Address(server(family, 0));
                assert!(!remembered.is_empty() && remembered.iter().all(|each| each.key.contains(&client)));
                // The listing of any nft must work with such a table.
                assert!(nft(&["list", "table", family.keyword(), TABLE.as_str()]).contains("expires"));

                let mut batch = Batch::new();
                let forget: Vec<_> = remembered.into_iter().map(Operation::DeleteElement).collect();
                batch.apply(&kernel.id(&table), &forget);
                kernel.commit(&batch).unwrap();
                assert_eq!(kernel.elements(&table, affinity).unwrap(), []);
            }
        },
    );
}

#[test]
fn a_client_is_remembered_on_all_addresses_of_a_port_until_its_endpoint_goes() {
    let name = "traffic::a_client_is_remembered_on_all_addresses_of_a_port_until_its_endpoint_goes";
    inside_world(name, world, || {
        let mut kernel = Kernel::open().unwrap();
        for (protocol, how, port) in [(Protocol::Tcp, "http", 8080), (Protocol::Udp, "udp", 8082)] {
            let sticky = |servers: &[u8]| Service {
                affinity: Some(10_800),
                ..service(protocol, port, TrafficPolicy::Local, servers)
            };
            for family in Family::ALL {
                let mut plane = plane(family, &sticky(&[1, 2]));
                load(&mut kernel, std::slice::from_ref(&plane));
                let external = SocketAddr::new(of(family, "203.0.113.1", "2001:db8::1"), 80);
                let node_port = SocketAddr::new(of(family, "10.1.0.1", "fd01:0::1"), 30080);
                let first = ask(how, external);
                assert_eq!(first.len(), 1, "{family:?} {how}");
                assert_eq!(ask(how, node_port), first, "another address of the port, {family:?} {how}");

                let is_first =
                    |number: &u8| first.iter().any(|(here, _)| *here == server(family, *number).to_string());
                let left: Vec<u8> = [1, 2].into_iter().filter(|number| !is_first(number)).collect();
                let update = plane.set(&self::name(), compile(&sticky(&left), &node(), View::Full, family));
                let mut batch = Batch::new();
                batch.apply(&kernel.id(&plane.table()), &update.now);
                kernel.commit(&batch).unwrap();
                let table = plane.table();
                let remembered = kernel.elements(&table, table.set(&layout::AFFINITY).unwrap()).unwrap();
                let gone = |each: &Element| {
                    Plane::remembered_endpoint(each).is_some_and(|pair| update.forget.contains(&pair))
                };
                let forget: Vec<_> =
                    remembered.into_iter().filter(gone).map(Operation::DeleteElement).collect();
                assert!(!forget.is_empty(), "{family:?} {how}");
                let mut batch = Batch::new();
                batch.apply(&kernel.id(&table), &forget);
                kernel.commit(&batch).unwrap();
                // A UDP client that gets the port of an earlier one would continue its connection.
                let of_flows =
                    if family == Family::Ip { conntrack::Family::V4 } else { conntrack::Family::V6 };
                Conntrack::open().unwrap().delete(of_flows, protocol.number(), |_| true).unwrap();
                for target in [external, node_port] {
                    let answers = ask(how, target);
                    let here: Vec<_> = answers.iter().map(|(here, _)| here.clone()).collect();
                    assert_eq!(here, [server(family, left[0]).to_string()], "{family:?} {how}");
                }
            }
        }
    });
}

#[test]
fn a_client_is_forgotten_after_the_timeout() {
    inside_world("traffic::a_client_is_forgotten_after_the_timeout", world, || {
        let mut kernel = Kernel::open().unwrap();
        let plain = service(Protocol::Tcp, 8080, TrafficPolicy::Local, &[1, 2]);
        let service = Service { affinity: Some(1), ..plain };
        for family in Family::ALL {
            let plane = plane(family, &service);
            load(&mut kernel, std::slice::from_ref(&plane));
            let target = SocketAddr::new(of(family, "203.0.113.1", "2001:db8::1"), 80);
            assert_eq!(ask("http", target).len(), 1, "each request renews it, {family:?}");
            let table = plane.table();
            let affinity = table.set(&layout::AFFINITY).unwrap();
            // The kernel hides what has expired and deletes it later.
            let deadline = Instant::now() + Duration::from_secs(20);
            while !kernel.elements(&table, affinity).unwrap().is_empty() {
                assert!(Instant::now() < deadline, "{family:?}");
                std::thread::sleep(Duration::from_millis(200));
            }
        }
    });
}

/// One exchange over a socket that keeps its port. Returns the server.
fn exchange(socket: &UdpSocket, target: SocketAddr) -> IpAddr {
    socket.send_to(b"hello", target).unwrap();
    let mut answer = [0; 2048];
    let length = socket.recv(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
    let (_, local) = answer.split_once("\"local\":\"").unwrap();
    local.split('"').next().unwrap().parse::<SocketAddr>().unwrap().ip()
}

#[test]
fn a_udp_client_leaves_an_endpoint_that_is_gone_once_its_connection_is_deleted() {
    inside_world(
        "traffic::a_udp_client_leaves_an_endpoint_that_is_gone_once_its_connection_is_deleted",
        world,
        || {
            let (mut kernel, mut connections) = (Kernel::open().unwrap(), Conntrack::open().unwrap());
            for (family, of_flows) in
                [(Family::Ip, conntrack::Family::V4), (Family::Ip6, conntrack::Family::V6)]
            {
                let before = service(Protocol::Udp, 8082, TrafficPolicy::Cluster, &[1]);
                let mut plane = plane(family, &before);
                load(&mut kernel, std::slice::from_ref(&plane));
                let socket = UdpSocket::bind((of(family, "0.0.0.0", "::"), 0)).unwrap();
                socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
                let target = SocketAddr::new(of(family, "10.96.0.1", "fd96::1"), 80);
                assert_eq!(exchange(&socket, target), server(family, 1));

                let after = service(Protocol::Udp, 8082, TrafficPolicy::Cluster, &[2]);
                let update = plane.set(&name(), compile(&after, &node(), View::Full, family));
                let mut batch = Batch::new();
                batch.apply(&kernel.id(&plane.table()), &update.now);
                kernel.commit(&batch).unwrap();
                // The kernel remembers.
                assert_eq!(exchange(&socket, target), server(family, 1));

                let serving = [SocketAddr::new(server(family, 2), 8082)];
                let mut delete = || {
                    connections.delete(of_flows, Protocol::Udp.number(), |flow| {
                        flow.original.destination == target && !serving.contains(&flow.reply.source)
                    })
                };
                assert_eq!(delete().unwrap(), 1);
                assert_eq!(delete().unwrap(), 0);
                assert_eq!(exchange(&socket, target), server(family, 2));
                assert_eq!(delete().unwrap(), 0);
            }
        },
    );
}

#[test]
fn the_tables_of_the_data_plane_are_what_nft_makes_of_their_text_and_are_adopted_when_nft_loads_it() {
    let name = "traffic::the_tables_of_the_data_plane_are_what_nft_makes_of_their_text_and_are_adopted_when_nft_loads_it";
    inside(name, || {
        let mut kernel = Kernel::open().unwrap();
        let service = service(Protocol::Tcp, 8080, TrafficPolicy::Local, &[1, 2]);
        for family in Family::ALL {
            let plane = plane(family, &service);
            let (table, elements) = (plane.table(), plane.elements());
            feed(&text::render(&table, &elements)).unwrap();
            let theirs = raw::report(&table);
            let read = found(&mut kernel, &table);
            let listing = nft(&["list", "table", family.keyword(), TABLE.as_str()]);
            kernel.load(&[(&table, &elements)]).unwrap();
            assert_eq!(raw::report(&table), theirs);
            assert_eq!(found(&mut kernel, &table), read);
            assert_eq!(nft(&["list", "table", family.keyword(), TABLE.as_str()]), listing);
        }
    });
}

#[test]
fn the_next_agent_finds_identities_and_slots_and_has_nothing_to_do() {
    inside("traffic::the_next_agent_finds_identities_and_slots_and_has_nothing_to_do", || {
        let service = service(Protocol::Tcp, 8080, TrafficPolicy::Local, &[1, 2]);
        for family in Family::ALL {
            let mut kernel = Kernel::open().unwrap();
            kernel.own_tables();
            load(&mut kernel, &[plane(family, &service)]);
            drop(kernel);

            let mut kernel = Kernel::open().unwrap();
            kernel.own_tables();
            let settings = Settings { table: TABLE, family, ahead: 5, remembered_clients: 1000 };
            let mut next = Plane::new(settings, node());
            let Found::Present { elements, .. } = kernel.read(&next.table()).unwrap() else {
                panic!("absent")
            };
            next.adopt(&elements);
            next.set(&name(), compile(&service, &node(), View::Full, family));
            let Found::Present { difference: None, elements } = kernel.read(&next.table()).unwrap() else {
                panic!("different")
            };
            kernel.adopt(&[&next.table()]).unwrap();
            assert_eq!(next.repair(elements), Vec::<Operation>::new());
        }
    });
}
