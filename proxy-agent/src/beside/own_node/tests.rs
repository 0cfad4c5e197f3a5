use super::*;

#[test]
fn an_interface_is_a_name_of_the_kernels_length() {
    assert_eq!(interface_pattern("cni0").unwrap(), InterfacePattern::Name("cni0".to_owned()));
    for bad in ["", "*", "a b", "x/y", "sixteen-letters-", "a*b"] {
        assert!(interface_pattern(bad).is_err(), "{bad}");
    }
}

#[test]
fn the_arguments_are_the_settings_of_the_node() {
    let range: IpNet = "10.0.0.0/8".parse().unwrap();
    let arguments = TrafficArgs { pod_cidrs: vec![range], masquerade_all: true, ..TrafficArgs::default() };
    let expected =
        TrafficSettings { pod_cidrs: vec![range], masquerade_all: true, ..TrafficSettings::default() };
    assert_eq!(arguments.settings(), expected);
    let ports = TrafficArgs { node_port_addresses: vec![range], ..TrafficArgs::default() };
    assert_eq!(ports.settings().node_port_addresses, [range]);
    let pattern = interface_pattern("veth*").unwrap();
    let by_interface = TrafficArgs { pod_interface: Some(pattern.clone()), ..TrafficArgs::default() };
    assert_eq!(by_interface.settings().pod_interface, Some(pattern));
}
