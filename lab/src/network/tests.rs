use super::*;
use crate::topology::NodeName;

fn topology(families: Families) -> Topology {
    let names = ["edge-1", "work-1"].map(|name| NodeName::try_from(name.to_owned()).unwrap());
    Topology::new(names.into(), None, families).unwrap()
}

#[test]
fn a_node_knows_the_pods_of_the_others_and_not_its_own() {
    let topology = topology(Families::Ipv4);
    let setup = node(&topology, &topology.nodes[0]);
    assert_eq!(
        setup.ip,
        [
            "link set lo up",
            "link set eth0 up",
            "address add 10.90.0.11/24 dev eth0",
            "route add default via 10.90.0.2",
            "route add 10.244.2.0/24 via 10.90.0.12",
        ]
    );
}

#[test]
fn a_single_stack_lab_has_nothing_of_the_other_family_anywhere() {
    let strangers: [(Families, &[&str]); 2] = [
        (Families::Ipv4, &["fd00", "2001:db8", "ipv6", "ip6"]),
        (Families::Ipv6, &["10.", "192.0.2", "198.51", "203.0", "ipv4", "ip saddr", "-iptables"]),
    ];
    for (families, words) in strangers {
        let topology = topology(families);
        let setups = [
            control_plane(&topology),
            router(families),
            client(CLIENT, families),
            node(&topology, &topology.nodes[1]),
        ];
        for setup in setups {
            let text = format!("{setup:?}");
            assert!(words.iter().all(|word| !text.contains(word)), "{families:?}: {text}");
        }
    }
}

#[test]
fn a_dual_stack_node_masquerades_both_families_and_only_towards_the_outside() {
    let topology = topology(Families::Dual);
    let setup = node(&topology, &topology.nodes[0]);
    assert!(
        setup.nft.contains("ip saddr 10.244.0.0/16 ip daddr != 10.244.0.0/16 oifname \"eth0\" masquerade")
    );
    assert!(
        setup.nft.contains("ip6 saddr fd00:244::/48 ip6 daddr != fd00:244::/48 oifname \"eth0\" masquerade")
    );
    assert!(setup.ip.contains(&"address add fd00:90::b/64 dev eth0 nodad".to_owned()));
}

#[test]
fn an_ipv6_node_masquerades_ipv6() {
    let topology = topology(Families::Ipv6);
    let setup = node(&topology, &topology.nodes[0]);
    assert!(
        setup
            .nft
            .contains("  ip6 saddr fd00:244::/48 ip6 daddr != fd00:244::/48 oifname \"eth0\" masquerade")
    );
}

#[test]
fn an_external_address_goes_to_nobody_one_or_several_nodes() {
    let address = "192.0.2.10".parse().unwrap();
    let nodes: Vec<IpAddr> = vec!["10.90.0.11".parse().unwrap(), "10.90.0.12".parse().unwrap()];
    assert_eq!(external_route(address, &[]).join(" "), "-4 route replace unreachable 192.0.2.10");
    assert_eq!(external_route(address, &nodes[..1]).join(" "), "-4 route replace 192.0.2.10 via 10.90.0.11");
    assert_eq!(
        external_route(address, &nodes).join(" "),
        "-4 route replace 192.0.2.10 nexthop via 10.90.0.11 nexthop via 10.90.0.12"
    );
}
