use super::*;

fn node(addresses: &[&str], accepting: NodePortAddresses) -> Node {
    Node {
        name: "n1".into(),
        zone: None,
        addresses: addresses.iter().map(|each| each.parse().unwrap()).collect(),
        local_pods: LocalPods::Unknown,
        node_port_addresses: accepting,
        masquerade_all: false,
    }
}

const ADDRESSES: [&str; 5] = ["192.0.2.1", "127.0.0.1", "10.0.0.1", "2001:db8::1", "::1"];

fn accepting(accepting: NodePortAddresses, family: Family) -> Vec<String> {
    node(&ADDRESSES, accepting).accepting(family).iter().map(ToString::to_string).collect()
}

fn within(address: &str, bits: u8) -> NodePortAddresses {
    NodePortAddresses::Within(vec![IpNet::new(address.parse().unwrap(), bits).unwrap()])
}

#[test]
fn the_primary_address_of_each_family_accepts_node_ports() {
    assert_eq!(accepting(NodePortAddresses::Primary, Family::Ip), ["192.0.2.1"]);
    assert_eq!(accepting(NodePortAddresses::Primary, Family::Ip6), ["2001:db8::1"]);
}

#[test]
fn a_family_without_a_range_accepts_node_ports_on_all_addresses() {
    assert_eq!(accepting(within("10.0.0.0", 8), Family::Ip), ["10.0.0.1"]);
    assert_eq!(accepting(within("10.0.0.0", 8), Family::Ip6), ["2001:db8::1"]);
    assert_eq!(accepting(within("2001:db8::", 32), Family::Ip), ["10.0.0.1", "192.0.2.1"]);
}

#[test]
fn loopback_addresses_never_accept_node_ports() {
    assert_eq!(accepting(within("127.0.0.0", 8), Family::Ip), <[&str; 0]>::default());
    assert_eq!(accepting(within("0.0.0.0", 0), Family::Ip), ["10.0.0.1", "192.0.2.1"]);
    assert_eq!(accepting(within("::", 0), Family::Ip6), ["2001:db8::1"]);
}
