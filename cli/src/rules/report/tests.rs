use isp_pod_rules::explain::{Claim, Facts, explain};
use isp_pod_rules::trace::trace;

use super::*;

const REDIRECT: &str = include_str!("../../../../pod-rules/tests/dumps/iptables-nft-redirect.json");
const TPROXY: &str = include_str!("../../../../pod-rules/tests/dumps/iptables-legacy-tproxy.json");

fn rules(dump: &str) -> PodRules {
    PodRules::decode(&serde_json::from_str(dump).unwrap()).unwrap()
}

#[test]
fn rules_are_explained_and_a_packet_is_followed() {
    let rules = rules(REDIRECT);
    let facts = Facts {
        addresses: ["10.1.0.2", "fd01::2"].map(|address| address.parse().unwrap()).into(),
        claims: vec![Claim { mode: Mode::Tproxy, by: "annotation x".to_owned() }],
        ..Facts::default()
    };
    let explanation = explain(&rules, &facts);
    let packet = "tcp 203.0.113.5 -> :8080".parse().unwrap();
    let report = Report {
        pod: "shop/cart-1".to_owned(),
        node: "work-1",
        written_by: Some("init container istio-init"),
        explanation: &explanation,
        packet: Some(Traced {
            packet: "tcp 203.0.113.5 -> :8080".to_owned(),
            trace: trace(&rules, &facts.addresses, &packet),
        }),
        rules: None,
    };
    let expected = "\
shop/cart-1: REDIRECT, by Istio's rules (init container istio-init, iptables-nft)
  node       work-1
  claimed    TPROXY by annotation x
  address    10.1.0.2, fd01::2
  inbound    tcp 1-15007, 15009-15019, 15022-15089, 15091-65535: port 15006 of the proxy, by REDIRECT
             tcp 15008, 15020-15021, 15090: directly, past the proxy
             udp: directly, past the proxy
  outbound   tcp all ports: port 15001 of the proxy, by REDIRECT
             udp: directly, past the proxy
  exempt     UID 1337, GID 1337
  problem    annotation x says TPROXY, but the mode in force is REDIRECT; recreate the pod, or correct what says so
  packet     tcp 203.0.113.5 -> :8080
               prerouting ip nat PREROUTING: meta l4proto tcp jump ISTIO_INBOUND
               prerouting ip nat ISTIO_INBOUND: meta l4proto tcp jump ISTIO_IN_REDIRECT
               prerouting ip nat ISTIO_IN_REDIRECT: meta l4proto tcp redirect to :15006
               redirected to port 15006 (REDIRECT)
";
    assert_eq!(text(&report, None), expected);
    isp_testkit::schema::assert_output("rules", &serde_json::json!(report));
    let raw = Report { packet: None, rules: Some(raw(&rules)), written_by: None, ..report };
    isp_testkit::schema::assert_output("rules", &serde_json::json!(raw));
}

#[test]
fn the_raw_rules_end_with_the_routing_that_is_not_usual() {
    let text = raw(&rules(TPROXY));
    assert!(text.starts_with("# iptables-legacy\ntable ip nat {\n"), "{text}");
    let end = "\
ip -4 rule add fwmark 0x539 lookup 133 preference 32765
ip -4 route add local 0.0.0.0/0 dev lo table 133
ip -6 rule add fwmark 0x539 lookup 133 preference 32765
ip -6 route add local ::/0 dev lo table 133
";
    assert!(text.ends_with(end), "{text}");
}
