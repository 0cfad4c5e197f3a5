use serde_json::{Value, json};

use super::*;

fn own(settings: &TrafficSettings, object: Value) -> Node {
    node("n1", Some(&serde_json::from_value(object).unwrap()), settings)
}

fn object() -> Value {
    json!({
        "metadata": {"name": "n1", "labels": {"topology.kubernetes.io/zone": "z1"}},
        "spec": {"podCIDR": "10.244.1.0/24", "podCIDRs": ["10.244.1.0/24", "fd00:244:0:1::/64"]},
        "status": {"addresses": [
            {"type": "Hostname", "address": "n1"}, {"type": "InternalIP", "address": "192.0.2.1"},
            {"type": "ExternalIP", "address": "198.51.100.1"}, {"type": "InternalIP", "address": "2001:db8::1"},
        ]},
    })
}

fn ranges(texts: &[&str]) -> Vec<IpNet> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn the_node_object_tells_addresses_zone_and_pod_ranges() {
    let node = own(&TrafficSettings::default(), object());
    assert_eq!(node.zone.as_deref(), Some("z1"));
    assert_eq!(node.addresses, [IpAddr::from([192, 0, 2, 1]), "2001:db8::1".parse().unwrap()]);
    assert_eq!(node.local_pods, LocalPods::Sources(ranges(&["10.244.1.0/24", "fd00:244:0:1::/64"])));
    assert_eq!(node.node_port_addresses, NodePortAddresses::Primary);
}

#[test]
fn settings_win_over_the_node_object() {
    let settings = TrafficSettings {
        pod_cidrs: ranges(&["10.0.0.0/8"]),
        node_port_addresses: ranges(&["192.0.2.0/24"]),
        masquerade_all: true,
        ..TrafficSettings::default()
    };
    let settled = own(&settings, object());
    assert_eq!(settled.local_pods, LocalPods::Sources(ranges(&["10.0.0.0/8"])));
    assert_eq!(settled.node_port_addresses, NodePortAddresses::Within(ranges(&["192.0.2.0/24"])));
    assert!(settled.masquerade_all);
    let pattern = InterfacePattern::Prefix("veth".to_owned());
    let by_interface = TrafficSettings { pod_interface: Some(pattern.clone()), ..TrafficSettings::default() };
    let expected = LocalPods::Interface(pattern);
    assert_eq!(own(&by_interface, object()).local_pods, expected);
}

#[test]
fn a_node_without_pod_ranges_or_that_does_not_exist_yet_is_still_a_node() {
    assert_eq!(own(&TrafficSettings::default(), json!({"metadata": {}})).local_pods, LocalPods::Unknown);
    assert!(node("n1", None, &TrafficSettings::default()).addresses.is_empty());
}
