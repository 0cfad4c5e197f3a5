use super::*;
use crate::decode::tests::dump;
use crate::rules::{Field, Match, Rule, Verdict};

fn facts(mode: Mode) -> Facts {
    let process = |container: &str, uid, gid| Process { container: container.to_owned(), uid, gid };
    Facts {
        addresses: ["10.1.0.2", "fd01::2"].map(|address| address.parse().unwrap()).into(),
        claims: vec![Claim { mode, by: "annotation sidecar.istio.io/interceptionMode".to_owned() }],
        proxies: vec![match mode {
            Mode::Tproxy => process("istio-proxy", 0, 1337),
            _ => process("istio-proxy", 1337, 1337),
        }],
        applications: vec![process("app", 1000, 1000)],
        ports: vec![8080],
        left_out: Vec::new(),
    }
}

fn codes(explanation: &Explanation) -> Vec<Code> {
    explanation.findings.iter().map(|finding| finding.code).collect()
}

#[test]
fn the_mode_the_origin_and_the_back_end_of_sound_rules_are_named() {
    let ours = |mode| {
        let mut facts = facts(mode);
        facts.proxies[0].uid = 1337;
        facts
    };
    for (name, mode, origin, back_end) in [
        ("iptables-nft", "redirect", Origin::Istio, BackEnd::IptablesNft),
        ("iptables-nft", "tproxy", Origin::Istio, BackEnd::IptablesNft),
        ("iptables-legacy", "redirect", Origin::Istio, BackEnd::IptablesLegacy),
        ("iptables-legacy", "tproxy", Origin::Istio, BackEnd::IptablesLegacy),
        ("nftables", "redirect", Origin::Istio, BackEnd::Nftables),
        ("nftables", "tproxy", Origin::Istio, BackEnd::Nftables),
        ("ours", "redirect", Origin::PodRedirect, BackEnd::Nftables),
        ("ours", "tproxy", Origin::PodRedirect, BackEnd::Nftables),
    ] {
        let wanted = if mode == "tproxy" { Mode::Tproxy } else { Mode::Redirect };
        let facts = if name == "ours" { ours(wanted) } else { facts(wanted) };
        let found = explain(&dump(&format!("{name}-{mode}")), &facts);
        assert_eq!(found.mode, wanted, "{name} {mode}");
        assert_eq!((found.origins, found.back_ends), (vec![origin], vec![back_end]), "{name} {mode}");
        assert_eq!(found.findings, [], "{name} {mode}");
        assert_eq!(found.families.len(), 2);
        for family in &found.families {
            assert_eq!((family.inbound_mode, family.outbound_mode), (wanted, Mode::Redirect));
            assert!(family.exempt.uids == [1337], "{name} {mode}: {:?}", family.exempt);
        }
    }
}

#[test]
fn a_pod_without_rules_has_no_mode() {
    let facts = Facts { addresses: vec!["10.1.0.2".parse().unwrap()], ..Facts::default() };
    let found = explain(&dump("none"), &facts);
    assert_eq!((found.mode, found.origins.len(), found.findings.len()), (Mode::None, 0, 0));
}

#[test]
fn ports_and_networks_are_listed_with_their_targets() {
    let found = explain(&dump("nftables-redirect"), &facts(Mode::Redirect));
    let inbound: Vec<_> =
        found.families[0].inbound.tcp.iter().map(|ports| format!("{ports}: {}", ports.target)).collect();
    assert_eq!(
        inbound,
        [
            "1-15007, 15009-15019, 15022-15089, 15091-65535: port 15006 of the proxy, by REDIRECT",
            "15008, 15020-15021, 15090: directly, past the proxy",
        ]
    );
    let outbound = &found.families[0].outbound;
    assert_eq!(outbound.tcp[0].to_string(), "all ports");
    let networks: Vec<_> = outbound.destinations.iter().map(|each| each.addresses.as_str()).collect();
    assert_eq!(networks, ["10.96.0.0/12", "192.168.0.0/16"]);
    assert_eq!(
        explain(&dump("ours-tproxy"), &facts(Mode::Tproxy)).families[0].outbound.destinations[0].addresses,
        "10.96.0.0/12"
    );
}

#[test]
fn a_lying_annotation_is_found() {
    for (claimed, name) in [(Mode::Tproxy, "nftables-redirect"), (Mode::Redirect, "iptables-nft-tproxy")] {
        let mut facts = facts(claimed);
        facts.proxies.clear();
        assert_eq!(codes(&explain(&dump(name), &facts)), [Code::ModeDiffers], "{name}");
    }
    let mut facts = facts(Mode::Redirect);
    facts.addresses.pop();
    assert_eq!(codes(&explain(&dump("none"), &facts)), [Code::ModeDiffers]);
}

/// Changes the rules of one chain in all tables.
fn changed(name: &str, chain: &str, change: impl Fn(&mut Vec<Rule>)) -> PodRules {
    let mut rules = dump(name);
    for table in &mut rules.ruleset.tables {
        if let Some(chain) = table.chains.get_mut(chain) {
            change(&mut chain.rules);
        }
    }
    rules
}

#[test]
fn a_proxy_that_is_not_exempt_loops() {
    for (back_end, chain) in
        [("iptables-nft", "ISTIO_OUTPUT"), ("iptables-legacy", "ISTIO_OUTPUT"), ("nftables", "istio-output")]
    {
        let rules = changed(&format!("{back_end}-redirect"), chain, |rules| {
            rules.retain(|rule| !rule.to_string().contains("1337 return"));
        });
        let found = explain(&rules, &facts(Mode::Redirect));
        assert_eq!(codes(&found), [Code::Loop], "{back_end}: {:?}", found.findings);
        assert!(found.findings[0].message.contains("come back to its port 15001"));
    }
}

#[test]
fn a_proxy_whose_connections_to_the_application_come_back_loops() {
    let rules = changed("iptables-nft-tproxy", "ISTIO_INBOUND", |rules| {
        rules.retain(|rule| !rule.to_string().contains("return"));
    });
    let found = explain(&rules, &facts(Mode::Tproxy));
    assert!(codes(&found).contains(&Code::Loop), "{:?}", found.findings);
}

#[test]
fn a_port_that_a_rule_leaves_out_is_a_bypass_unless_the_manifest_says_so() {
    let port = |port| Match::Number {
        field: Field::DestinationPort,
        mask: Field::DestinationPort.all(),
        ranges: vec![(port, port)],
        negated: false,
    };
    let left_out = |rules: &mut Vec<Rule>| {
        let statements = vec![Statement::Match(port(8080)), Statement::Verdict(Verdict::Return)];
        rules.insert(0, Rule { statements, comment: None });
    };
    for name in ["iptables-nft-redirect", "iptables-legacy-tproxy"] {
        let mode = if name.ends_with("tproxy") { Mode::Tproxy } else { Mode::Redirect };
        let rules = changed(name, "ISTIO_INBOUND", left_out);
        assert_eq!(codes(&explain(&rules, &facts(mode))), [Code::InboundBypass], "{name}");
        let told = Facts { left_out: vec![(8000, 8100)], ..facts(mode) };
        assert_eq!(explain(&rules, &told).findings, []);
    }
}

#[test]
fn an_application_with_the_users_of_the_proxy_is_a_bypass() {
    let mut facts = facts(Mode::Redirect);
    facts.applications[0].uid = 1337;
    let found = explain(&dump("iptables-nft-redirect"), &facts);
    assert_eq!(codes(&found), [Code::OutboundBypass]);
}

#[test]
fn a_family_without_rules_is_a_bypass() {
    let mut rules = dump("iptables-nft-redirect");
    rules.ruleset.tables.retain(|table| table.family != crate::rules::TableFamily::Ip6);
    assert_eq!(codes(&explain(&rules, &facts(Mode::Redirect))), [Code::FamilyBypass]);
}

#[test]
fn answers_are_lost_without_the_route_for_their_mark() {
    for name in ["iptables-nft-tproxy", "iptables-legacy-tproxy", "nftables-tproxy", "ours-tproxy"] {
        let mut rules = dump(name);
        let mut facts = facts(Mode::Tproxy);
        if name == "ours-tproxy" {
            facts.proxies[0].uid = 1337;
        }
        assert_eq!(explain(&rules, &facts).findings, [], "{name}");
        rules.routing.rules.retain(|rule| rule.mark.is_none());
        let found = codes(&explain(&rules, &facts));
        assert!(
            !found.is_empty() && found.iter().all(|code| *code == Code::AnswersLost),
            "{name}: {found:?}"
        );
    }
}

#[test]
fn a_statement_that_is_not_known_is_named_and_nothing_is_guessed() {
    let rules = changed("iptables-nft-redirect", "ISTIO_INBOUND", |rules| {
        let statements = vec![Statement::Unknown("geoip".to_owned()), Statement::Verdict(Verdict::Return)];
        rules.insert(0, Rule { statements, comment: None });
    });
    let found = explain(&rules, &facts(Mode::Redirect));
    assert_eq!(found.mode, Mode::Unclear);
    assert_eq!(codes(&found), [Code::Unclear]);
    assert!(found.findings[0].message.contains("geoip"), "{}", found.findings[0].message);
    assert_eq!(found.unknown, ["table ip nat: <unknown: geoip>", "table ip6 nat: <unknown: geoip>"]);
}
