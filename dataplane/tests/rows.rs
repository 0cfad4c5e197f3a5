//! kube-proxy's behaviour, row by row.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod common;

use std::collections::BTreeSet;

use common::{balanced, endpoint, ip, name, node, port, range};
use isp_dataplane::{
    compile::compile,
    model::{Endpoint, LocalPods, Node, NodePortAddresses, Service, ServicePort, TrafficPolicy, View},
    nft::{Family, Operation, Protocol},
    plane::Plane,
    ruleset::Ruleset,
    trace::{Outcome, Packet, trace},
};

/// Where a packet comes from: source and interface.
#[derive(Clone, Copy)]
struct Client(&'static str, Option<&'static str>);

const OUTSIDE: Client = Client("198.51.100.100", Some("eth0"));
const POD_HERE: Client = Client("10.244.1.9", Some("cni0"));
const POD_THERE: Client = Client("10.244.2.9", Some("eth0"));
const NODE: Client = Client("192.0.2.1", None);
/// The endpoint on this node.
const ENDPOINT: Client = Client("10.244.1.5", Some("cni0"));

const CLUSTER_IP: (&str, u16) = ("10.96.0.10", 80);
const BALANCER: (&str, u16) = ("198.51.100.20", 80);
const EXTERNAL_IP: (&str, u16) = ("203.0.113.7", 80);
const NODE_PORT: (&str, u16) = ("192.0.2.1", 30080);
const EXTERNALS: [(&str, u16); 3] = [BALANCER, EXTERNAL_IP, NODE_PORT];

const HERE: &str = "10.244.1.5";
const THERE: &str = "10.244.2.5";

/// One Service on one node.
struct Row {
    service: Service,
    node: Node,
    view: View,
}

fn row(service: Service) -> Row {
    Row { service, node: node(), view: View::Full }
}

impl Row {
    fn ruleset(&self) -> Ruleset {
        let mut plane = Plane::new(common::settings(Family::Ip), self.node.clone());
        plane.set(&name("row"), compile(&self.service, &self.node, self.view, Family::Ip));
        common::ruleset(&plane)
    }

    /// All that may happen, in words: an endpoint, "masqueraded" after it where it is.
    fn outcomes_of(&self, protocol: Protocol, client: Client, (address, port): (&str, u16)) -> Vec<String> {
        let packet = Packet {
            source: ip(client.0),
            destination: ip(address),
            protocol,
            port,
            interface: client.1.map(str::to_owned),
        };
        let stories = trace(&self.ruleset(), &self.node.addresses, &packet).unwrap();
        let word = |outcome| match outcome {
            Outcome::Redirected { to, masqueraded: false } => to.address.to_string(),
            Outcome::Redirected { to, masqueraded: true } => format!("{} masqueraded", to.address),
            Outcome::Untouched => "untouched".to_owned(),
            Outcome::Rejected => "rejected".to_owned(),
            Outcome::Dropped => "dropped".to_owned(),
        };
        stories.iter().map(|story| word(story.outcome)).collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn outcomes(&self, client: Client, frontend: (&str, u16)) -> Vec<String> {
        self.outcomes_of(Protocol::Tcp, client, frontend)
    }
}

fn local(service: Service) -> Service {
    Service { external_policy: TrafficPolicy::Local, ..service }
}

fn with_endpoints(service: Service, endpoints: &[Endpoint]) -> Service {
    let port = ServicePort { endpoints: endpoints.to_vec(), ..service.ports[0].clone() };
    Service { ports: vec![port], ..service }
}

fn both_masqueraded() -> Vec<String> {
    vec![format!("{HERE} masqueraded"), format!("{THERE} masqueraded")]
}

#[test]
fn a_cluster_ip_leads_to_all_endpoints_and_only_local_pods_keep_their_source() {
    let row = row(balanced());
    assert_eq!(row.outcomes(POD_HERE, CLUSTER_IP), [HERE, THERE]);
    for client in [NODE, OUTSIDE, POD_THERE] {
        assert_eq!(row.outcomes(client, CLUSTER_IP), both_masqueraded());
    }
}

#[test]
fn without_detection_of_local_pods_cluster_ip_traffic_keeps_its_source() {
    let row = Row { node: Node { local_pods: LocalPods::Unknown, ..node() }, ..row(balanced()) };
    assert_eq!(row.outcomes(OUTSIDE, CLUSTER_IP), [HERE, THERE]);
}

#[test]
fn masquerade_all_masquerades_cluster_ip_traffic_of_local_pods_too() {
    let row = Row { node: Node { masquerade_all: true, ..node() }, ..row(balanced()) };
    assert_eq!(row.outcomes(POD_HERE, CLUSTER_IP), both_masqueraded());
}

#[test]
fn internal_policy_local_uses_endpoints_of_this_node() {
    let service = Service { internal_policy: TrafficPolicy::Local, ..balanced() };
    assert_eq!(row(service.clone()).outcomes(POD_HERE, CLUSTER_IP), [HERE]);
    let elsewhere = with_endpoints(service, &[endpoint(THERE, "n2")]);
    assert_eq!(row(elsewhere.clone()).outcomes(POD_HERE, CLUSTER_IP), ["dropped"]);
    assert_eq!(row(elsewhere).outcomes(OUTSIDE, BALANCER), [format!("{THERE} masqueraded")]);
}

#[test]
fn external_policy_cluster_masquerades_everyone() {
    for frontend in EXTERNALS {
        for client in [OUTSIDE, POD_HERE, NODE] {
            assert_eq!(row(balanced()).outcomes(client, frontend), both_masqueraded());
        }
    }
}

#[test]
fn external_policy_local_has_three_cases() {
    let row = row(local(balanced()));
    for frontend in EXTERNALS {
        assert_eq!(row.outcomes(POD_HERE, frontend), [HERE, THERE], "a local pod gets all, unmasqueraded");
        assert_eq!(row.outcomes(NODE, frontend), both_masqueraded(), "the node gets all, masqueraded");
        assert_eq!(row.outcomes(OUTSIDE, frontend), [HERE], "others get local ones, source kept");
    }
}

#[test]
fn external_policy_local_without_local_endpoints_drops_only_clients_from_outside() {
    let row = row(local(with_endpoints(balanced(), &[endpoint(THERE, "n2")])));
    for frontend in EXTERNALS {
        assert_eq!(row.outcomes(OUTSIDE, frontend), ["dropped"]);
        assert_eq!(row.outcomes(POD_HERE, frontend), [THERE]);
        assert_eq!(row.outcomes(NODE, frontend), [format!("{THERE} masqueraded")]);
    }
    assert_eq!(row.outcomes(POD_HERE, CLUSTER_IP), [THERE], "the policies are judged separately");
}

#[test]
fn a_service_without_any_endpoint_rejects() {
    for service in [balanced(), local(balanced())] {
        let row = row(with_endpoints(service, &[]));
        for client in [OUTSIDE, POD_HERE, NODE] {
            for frontend in [CLUSTER_IP, BALANCER, EXTERNAL_IP, NODE_PORT] {
                assert_eq!(row.outcomes(client, frontend), ["rejected"]);
            }
        }
    }
}

#[test]
fn ports_that_a_cluster_ip_does_not_have_are_rejected() {
    let row = row(balanced());
    assert_eq!(row.outcomes(POD_HERE, ("10.96.0.10", 81)), ["rejected"]);
    assert_eq!(row.outcomes(NODE, ("10.96.0.10", 81)), ["rejected"]);
    assert_eq!(row.outcomes_of(Protocol::Udp, POD_HERE, CLUSTER_IP), ["rejected"], "the same port of UDP");
    assert_eq!(row.outcomes(OUTSIDE, ("198.51.100.20", 81)), ["untouched"], "other addresses are not ours");
}

#[test]
fn an_endpoint_that_reaches_itself_is_masqueraded() {
    for service in [balanced(), local(balanced())] {
        let row = row(with_endpoints(service, &[endpoint(HERE, "n1")]));
        for frontend in [CLUSTER_IP, BALANCER] {
            assert_eq!(row.outcomes(ENDPOINT, frontend), [format!("{HERE} masqueraded")]);
        }
    }
    assert_eq!(
        row(balanced()).outcomes(ENDPOINT, CLUSTER_IP),
        [format!("{HERE} masqueraded"), THERE.to_owned()]
    );
}

/// Some load balancers of small clusters give every node's address as theirs, and serve on it.
#[test]
fn an_endpoint_that_has_the_address_of_a_frontend_is_reached() {
    let mut there = endpoint("192.0.2.2", "n2");
    there.target.port = 80;
    let mut service = local(with_endpoints(balanced(), &[there]));
    service.load_balancer_ips = vec![ip("192.0.2.1"), ip("192.0.2.2")];
    let row = row(service);
    for frontend in [("192.0.2.1", 80), ("192.0.2.2", 80)] {
        assert_eq!(row.outcomes(POD_HERE, frontend), ["192.0.2.2"]);
        assert_eq!(row.outcomes(NODE, frontend), ["192.0.2.2 masqueraded"]);
        assert_eq!(row.outcomes(OUTSIDE, frontend), ["dropped"]);
    }
}

#[test]
fn node_ports_are_on_the_chosen_addresses_and_never_on_loopback() {
    let mut row = row(balanced());
    assert_eq!(row.outcomes(OUTSIDE, NODE_PORT), both_masqueraded());
    assert_eq!(row.outcomes(OUTSIDE, ("10.244.1.1", 30080)), ["untouched"], "not the primary address");
    assert_eq!(row.outcomes(Client("127.0.0.1", None), ("127.0.0.1", 30080)), ["untouched"]);
    row.node.node_port_addresses = NodePortAddresses::Within(vec![range("10.0.0.0/8")]);
    assert_eq!(row.outcomes(OUTSIDE, NODE_PORT), ["untouched"]);
    assert_eq!(row.outcomes(OUTSIDE, ("10.244.1.1", 30080)), both_masqueraded());
    assert_eq!(row.outcomes(OUTSIDE, ("10.244.3.3", 30080)), ["untouched"], "not an address of the node");
}

#[test]
fn source_ranges_guard_the_load_balancer_only() {
    let row = row(Service { source_ranges: vec![range("198.51.100.96/28")], ..balanced() });
    assert_eq!(row.outcomes(OUTSIDE, BALANCER), both_masqueraded());
    for client in [POD_HERE, NODE, Client("198.51.100.112", Some("eth0"))] {
        assert_eq!(row.outcomes(client, BALANCER), ["dropped"]);
        for frontend in [CLUSTER_IP, EXTERNAL_IP, NODE_PORT] {
            assert_ne!(row.outcomes(client, frontend), ["dropped"]);
        }
    }
}

#[test]
fn a_range_of_everything_turns_the_guard_off() {
    let ranges = vec![range("198.51.100.96/28"), range("0.0.0.0/0")];
    assert_eq!(
        row(Service { source_ranges: ranges, ..balanced() }).outcomes(POD_HERE, BALANCER),
        both_masqueraded()
    );
}

#[test]
fn a_range_with_the_node_admits_the_load_balancers_own_address() {
    let from_balancer = Client("198.51.100.20", Some("eth0"));
    let with = |ranges: &[&str]| {
        let source_ranges = ranges.iter().map(|text| range(text)).collect();
        row(Service { source_ranges, ..balanced() })
    };
    assert_eq!(with(&["192.0.2.0/24"]).outcomes(from_balancer, BALANCER), both_masqueraded());
    assert_eq!(with(&["192.0.3.0/24"]).outcomes(from_balancer, BALANCER), ["dropped"]);
}

#[test]
fn views_take_away_addresses() {
    let view = |view| Row { view, ..row(local(balanced())) };
    for frontend in [BALANCER, EXTERNAL_IP] {
        assert_eq!(view(View::ClusterOnly).outcomes(NODE, frontend), ["untouched"]);
    }
    assert_eq!(view(View::ClusterOnly).outcomes(POD_HERE, CLUSTER_IP), [HERE, THERE]);
    assert_eq!(view(View::ClusterOnly).outcomes(OUTSIDE, NODE_PORT), [HERE], "NodePorts obey the policy");
    for frontend in [CLUSTER_IP, BALANCER, EXTERNAL_IP, NODE_PORT] {
        assert_eq!(view(View::Hidden).outcomes(POD_HERE, frontend), ["untouched"]);
    }
}

#[test]
fn protocols_are_told_apart() {
    let udp = ServicePort { protocol: Protocol::Udp, ..port(vec![endpoint(THERE, "n2")]) };
    let sctp = ServicePort { protocol: Protocol::Sctp, ..port(vec![endpoint("10.244.2.6", "n2")]) };
    let tcp = port(vec![endpoint(HERE, "n1")]);
    let row = row(Service { ports: vec![udp, sctp, tcp], ..balanced() });
    assert_eq!(row.outcomes_of(Protocol::Tcp, POD_HERE, CLUSTER_IP), [HERE]);
    assert_eq!(row.outcomes_of(Protocol::Udp, POD_HERE, CLUSTER_IP), [THERE]);
    assert_eq!(row.outcomes_of(Protocol::Sctp, POD_HERE, CLUSTER_IP), ["10.244.2.6"]);
}

/// The stories of a packet after clients were remembered.
fn after(ruleset: &Ruleset, client: Client, frontend: (&str, u16)) -> (BTreeSet<Outcome>, Ruleset) {
    let packet = Packet {
        source: ip(client.0),
        destination: ip(frontend.0),
        protocol: Protocol::Tcp,
        port: frontend.1,
        interface: client.1.map(str::to_owned),
    };
    let stories = trace(ruleset, &node().addresses, &packet).unwrap();
    let mut next = ruleset.clone();
    for element in &stories.last().unwrap().remembered {
        let _ = next.apply(&Operation::DeleteElement(element.clone()));
        next.apply(&Operation::AddElement(element.clone())).unwrap();
    }
    (stories.into_iter().map(|story| story.outcome).collect(), next)
}

#[test]
fn session_affinity_is_shared_by_all_addresses_of_a_port() {
    let row = row(Service { affinity: Some(600), ..balanced() });
    let (first, ruleset) = after(&row.ruleset(), OUTSIDE, BALANCER);
    assert_eq!(first.len(), 2, "a new client gets any endpoint");
    let mut kept = BTreeSet::new();
    for frontend in [CLUSTER_IP, BALANCER, EXTERNAL_IP, NODE_PORT] {
        let (again, _) = after(&ruleset, OUTSIDE, frontend);
        assert_eq!(again.len(), 1, "{frontend:?}");
        kept.extend(again);
    }
    assert_eq!(kept.len(), 1);
    assert_eq!(after(&ruleset, POD_THERE, BALANCER).0.len(), 2, "another client is free");
}

#[test]
fn a_remembered_endpoint_elsewhere_is_not_used_where_the_source_is_kept() {
    // The client is remembered at the endpoint elsewhere by way of the ClusterIP.
    let row = row(Service { affinity: Some(600), ..local(balanced()) });
    let (_, ruleset) = after(&row.ruleset(), OUTSIDE, CLUSTER_IP);
    let (again, _) = after(&ruleset, OUTSIDE, CLUSTER_IP);
    assert_eq!(again.iter().map(ToString::to_string).collect::<Vec<_>>().len(), 1);
    assert!(again.iter().all(|outcome| outcome.to_string().contains(THERE)), "{again:?}");
    let (external, _) = after(&ruleset, OUTSIDE, BALANCER);
    assert!(external.iter().all(|outcome| outcome.to_string().contains(HERE)), "{external:?}");
}
