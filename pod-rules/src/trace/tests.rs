use super::*;
use crate::decode::tests::dump;

const POD: [&str; 2] = ["10.1.0.2", "fd01::2"];

fn outcome(name: &str, packet: &str) -> String {
    let pod = POD.map(|address| address.parse().unwrap());
    trace(&dump(name), &pod, &packet.parse().unwrap()).outcome.to_string()
}

/// Packets through the rules of every back end, which the kernel treats alike.
#[test]
fn rules_of_every_back_end_do_the_same() {
    for back_end in ["iptables-nft", "iptables-legacy", "nftables"] {
        for (mode, packet, expected) in [
            ("redirect", "tcp 203.0.113.5 -> :8080", "redirected to port 15006 (REDIRECT)"),
            ("redirect", "tcp 2001:db8::5 -> :8080", "redirected to port 15006 (REDIRECT)"),
            ("redirect", "tcp 203.0.113.5 -> :15021", "delivered to port 15021, as addressed"),
            ("redirect", "udp 203.0.113.5 -> :8080", "delivered to port 8080, as addressed"),
            ("redirect", "tcp uid 1000 gid 1000 -> 198.51.100.7:443", "redirected to port 15001 (REDIRECT)"),
            ("redirect", "tcp uid 1337 gid 1 -> 198.51.100.7:443", "leaves the pod for 198.51.100.7:443"),
            ("redirect", "tcp uid 1 gid 1337 -> [2001:db8::7]:443", "leaves the pod for [2001:db8::7]:443"),
            ("redirect", "tcp 127.0.0.6 uid 1337 gid 1337 -> :8080", "delivered to port 8080, as addressed"),
            ("redirect", "tcp uid 1337 gid 1337 -> :8080", "redirected to port 15006 (REDIRECT)"),
            ("redirect", "tcp uid 1000 gid 1000 -> :8080", "delivered to port 8080, as addressed"),
            ("redirect", "tcp uid 1000 gid 1000 -> 127.0.0.1:8080", "delivered to port 8080, as addressed"),
            ("tproxy", "tcp 203.0.113.5 -> :8080", "handed to port 15006 (TPROXY)"),
            ("tproxy", "tcp 2001:db8::5 -> :8080", "handed to port 15006 (TPROXY)"),
            ("tproxy", "tcp 203.0.113.5 -> :15090", "delivered to port 15090, as addressed"),
            ("tproxy", "tcp uid 1000 gid 1000 -> 198.51.100.7:443", "redirected to port 15001 (REDIRECT)"),
            ("tproxy", "tcp uid 0 gid 1337 -> 198.51.100.7:443", "leaves the pod for 198.51.100.7:443"),
            (
                "tproxy",
                "tcp 203.0.113.5 uid 0 gid 1337 mark 1337 -> :8080",
                "delivered to port 8080, as addressed",
            ),
        ] {
            assert_eq!(
                outcome(&format!("{back_end}-{mode}"), packet),
                expected,
                "{back_end} {mode} {packet}"
            );
        }
    }
}

#[test]
fn our_own_rules_do_what_their_settings_say() {
    for (mode, packet, expected) in [
        ("redirect", "tcp 203.0.113.5 -> :8080", "redirected to port 15006 (REDIRECT)"),
        ("tproxy", "tcp 2001:db8::5 -> :8080", "handed to port 15006 (TPROXY)"),
        ("tproxy", "tcp 203.0.113.5 -> :15020", "delivered to port 15020, as addressed"),
        ("tproxy", "tcp uid 1 -> 198.51.100.7:443", "redirected to port 15001 (REDIRECT)"),
        ("tproxy", "tcp uid 1 -> 10.96.0.10:53", "leaves the pod for 10.96.0.10:53"),
        ("tproxy", "tcp uid 1337 -> 198.51.100.7:443", "leaves the pod for 198.51.100.7:443"),
        ("redirect", "tcp 203.0.113.5 uid 1337 -> :8080", "delivered to port 8080, as addressed"),
    ] {
        assert_eq!(outcome(&format!("ours-{mode}"), packet), expected, "{mode} {packet}");
    }
    assert_eq!(outcome("none", "tcp 203.0.113.5 -> :8080"), "delivered to port 8080, as addressed");
}

#[test]
fn a_trace_names_the_rules_that_did_something() {
    let pod = POD.map(|address| address.parse().unwrap());
    let found = trace(&dump("iptables-legacy-redirect"), &pod, &"tcp 203.0.113.5 -> :80".parse().unwrap());
    let steps: Vec<_> =
        found.steps.iter().map(|step| format!("{} {}: {}", step.table, step.chain, step.rule)).collect();
    assert_eq!(
        steps,
        [
            "ip nat PREROUTING: meta l4proto tcp jump ISTIO_INBOUND",
            "ip nat ISTIO_INBOUND: meta l4proto tcp jump ISTIO_IN_REDIRECT",
            "ip nat ISTIO_IN_REDIRECT: meta l4proto tcp redirect to :15006",
        ]
    );
}
