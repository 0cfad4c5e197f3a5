use super::*;
use crate::model::{Endpoint, LocalPods, NodePortAddresses};
use TrafficPolicy::{Cluster, Local};

fn node() -> Node {
    Node {
        name: "n1".into(),
        zone: None,
        addresses: vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()],
        local_pods: LocalPods::Unknown,
        node_port_addresses: NodePortAddresses::Primary,
        masquerade_all: false,
    }
}

fn range(address: &str, bits: u8) -> IpNet {
    IpNet::new(address.parse().unwrap(), bits).unwrap()
}

fn service() -> Service {
    Service {
        cluster_ips: vec!["10.96.0.1".parse().unwrap()],
        external_ips: vec!["203.0.113.7".parse().unwrap(), "198.51.100.20".parse().unwrap()],
        load_balancer_ips: vec!["198.51.100.20".parse().unwrap()],
        ports: vec![ServicePort {
            protocol: Protocol::Tcp,
            port: 80,
            node_port: Some(30080),
            endpoints: Vec::new(),
        }],
        ..Service::default()
    }
}

fn plan_of(service: &Service, view: View) -> PortPlan {
    compile(service, &node(), view, Family::Ip).unwrap().ports.remove(0)
}

#[test]
fn a_family_without_a_cluster_ip_has_no_plan_whatever_other_addresses_there_are() {
    let mut service = service();
    service.load_balancer_ips.push("2001:db8:ffff::20".parse().unwrap());
    assert_eq!(compile(&service, &node(), View::Full, Family::Ip6), None);
    service.cluster_ips.clear();
    assert_eq!(compile(&service, &node(), View::Full, Family::Ip), None);
}

#[test]
fn an_address_that_is_external_twice_is_there_once() {
    let addresses: Vec<String> =
        plan_of(&service(), View::Full).external_ips.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["198.51.100.20", "203.0.113.7"]);
}

#[test]
fn cluster_only_hides_external_addresses_and_keeps_the_node_port() {
    let plan = plan_of(&service(), View::ClusterOnly);
    assert_eq!((plan.external_ips, plan.node_port), (Vec::new(), Some(30080)));
}

#[test]
fn a_hidden_service_has_no_plan() {
    assert_eq!(compile(&service(), &node(), View::Hidden, Family::Ip), None);
}

#[test]
fn the_local_set_is_planned_only_if_a_policy_asks_for_it() {
    let local = |internal, external, node_port, view| {
        let mut service = Service { internal_policy: internal, external_policy: external, ..service() };
        service.ports[0].node_port = node_port;
        plan_of(&service, view).local.is_some()
    };
    assert!(!local(Cluster, Cluster, Some(30080), View::Full));
    assert!(local(Local, Cluster, Some(30080), View::Full));
    assert!(local(Cluster, Local, Some(30080), View::Full));
    assert!(local(Cluster, Local, Some(30080), View::ClusterOnly));
    assert!(!local(Cluster, Local, None, View::ClusterOnly), "nothing external is left");
}

fn sources(ranges: &[IpNet]) -> Option<Vec<String>> {
    let service = Service { source_ranges: ranges.to_vec(), ..service() };
    let guard = plan_of(&service, View::Full).guard?;
    assert_eq!(guard.addresses, service.load_balancer_ips, "external IPs are not guarded");
    Some(guard.sources.iter().map(ToString::to_string).collect())
}

#[test]
fn source_ranges_guard_and_any_range_of_everything_turns_them_off() {
    assert_eq!(sources(&[]), None);
    assert_eq!(sources(&[range("10.0.0.0", 8)]), Some(vec!["10.0.0.0/8".to_owned()]));
    assert_eq!(sources(&[range("10.0.0.0", 8), range("0.0.0.0", 0)]), None);
    assert_eq!(sources(&[range("fd00::", 8)]), None, "ranges of the other family do not count");
}

#[test]
fn a_range_that_holds_the_node_allows_the_load_balancer_as_a_source() {
    let expected = Some(vec!["192.0.2.0/24".to_owned(), "198.51.100.20/32".to_owned()]);
    assert_eq!(sources(&[range("192.0.2.0", 24)]), expected);
}

#[test]
fn ranges_inside_others_are_left_out_because_the_kernel_refuses_overlaps() {
    let ranges = [range("10.1.0.0", 16), range("10.0.0.0", 8), range("10.1.2.3", 32), range("10.0.0.0", 9)];
    assert_eq!(sources(&ranges), Some(vec!["10.0.0.0/8".to_owned()]));
}

#[test]
fn more_endpoints_than_a_handle_can_count_are_left_out() {
    let mut service = service();
    service.ports[0].endpoints = (0..5000)
        .map(|port| Endpoint {
            target: Target { address: [10, 0, 0, 1].into(), port },
            ready: true,
            serving: true,
            terminating: false,
            node: None,
            zone_hints: Vec::new(),
            node_hints: Vec::new(),
        })
        .collect();
    let plan = plan_of(&service, View::Full);
    assert_eq!((plan.cluster.len(), plan.left_out), (MOST_ENDPOINTS, 5000 - MOST_ENDPOINTS));
}

#[test]
fn a_port_that_is_there_twice_is_planned_once() {
    let mut service = service();
    service.ports.push(ServicePort { node_port: None, ..service.ports[0].clone() });
    assert_eq!(compile(&service, &node(), View::Full, Family::Ip).unwrap().ports.len(), 1);
}
