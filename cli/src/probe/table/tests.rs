use super::*;

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The nodes of the lab; the target is on edge-1.
pub(crate) fn facts(is_local: bool) -> Facts {
    let nodes = [("edge-1", 11, 1), ("work-1", 12, 2), ("work-2", 13, 3)];
    let node = |(name, host, pods): (&str, u8, u8)| {
        (name.to_owned(), [ip(&format!("10.90.0.{host}")), ip(&format!("10.244.{pods}.1"))].into())
    };
    Facts { nodes: nodes.map(node).into(), targets: ["edge-1".to_owned()].into(), is_local }
}

pub(crate) fn pod() -> Source {
    Source::Pod { node: "work-1".to_owned() }
}

pub(crate) fn node_port(node: &str) -> Destination {
    Destination::NodePort { node: node.to_owned() }
}

pub(crate) fn seen(sources: &[&str]) -> Observed {
    let seen = |source: &&str| Seen {
        source: ip(source),
        whose: Whose::Unknown,
        target_node: Some("edge-1".to_owned()),
    };
    Observed::Seen(sources.iter().map(seen).collect())
}

pub(crate) fn expects(sources: &[&str]) -> Expected {
    Expected::Seen {
        sources: sources.iter().map(|source| ip(source)).collect(),
        changed_by: None,
        reason: None,
    }
}

pub(crate) fn silence() -> Expected {
    Expected::Silent { reason: "no local endpoint".to_owned() }
}

pub(crate) fn cell(
    from: Source,
    own: &str,
    to: Destination,
    observed: Observed,
    expected: Vec<Expected>,
    is_local: bool,
) -> Cell {
    let address = "10.96.7.7:80".parse().unwrap();
    Cell::new(Asked { from, own: Some(ip(own)), to, address, observed, expected }, &facts(is_local))
}

#[test]
fn whose_address_arrived_is_told() {
    let host = Source::Host { node: "work-1".to_owned() };
    for (from, own, source, expected) in [
        (Source::ThisMachine, "198.51.100.10", "198.51.100.10", Whose::Own),
        (Source::ThisMachine, "198.51.100.10", "10.244.1.1", Whose::Node("edge-1".to_owned())),
        (Source::ThisMachine, "192.168.1.5", "203.0.113.9", Whose::Unknown),
        (pod(), "10.244.2.5", "10.244.2.5", Whose::Own),
        (pod(), "10.244.2.5", "10.90.0.12", Whose::OwnNode),
        (pod(), "10.244.2.5", "10.90.0.13", Whose::Node("work-2".to_owned())),
        (pod(), "10.244.2.5", "127.0.0.6", Whose::Sidecar),
        (host.clone(), "10.90.0.12", "10.244.2.1", Whose::Own),
        (host, "10.90.0.12", "10.90.0.11", Whose::Node("edge-1".to_owned())),
    ] {
        assert_eq!(facts(false).whose(&from, Some(ip(own)), ip(source)), expected, "{from} {source}");
    }
}

#[test]
fn cells_are_judged_by_what_arrives_and_by_what_was_expected() {
    let here = || Source::ThisMachine;
    let own = "198.51.100.10";
    let timeout = || Observed::Silent("timed out".to_owned());
    let external = || Destination::External { number: 0 };
    // Whether the source is lost, and whether it is a surprise.
    for (what, to, observed, expected, is_local, verdict) in [
        ("kept", external(), seen(&[own]), vec![expects(&[own])], true, (false, false)),
        (
            "lost as expected",
            external(),
            seen(&["10.244.1.1"]),
            vec![expects(&["10.244.1.1", "10.90.0.11"])],
            false,
            (true, false),
        ),
        ("lost as a surprise", external(), seen(&["10.244.1.1"]), vec![expects(&[own])], true, (true, true)),
        (
            "once kept, once lost",
            external(),
            seen(&[own, "10.90.0.11"]),
            vec![expects(&[own])],
            true,
            (true, true),
        ),
        (
            "by either path",
            external(),
            seen(&["10.244.1.1", "10.90.0.12"]),
            vec![expects(&["10.244.1.1"]), expects(&["10.90.0.12"])],
            false,
            (true, false),
        ),
        ("dropped as intended", node_port("work-1"), timeout(), vec![silence()], true, (false, false)),
        (
            "dropped by the node with the endpoint",
            node_port("edge-1"),
            timeout(),
            vec![expects(&[own])],
            true,
            (true, true),
        ),
        (
            "silence that is expected helps nobody",
            external(),
            timeout(),
            vec![silence()],
            true,
            (true, false),
        ),
        (
            "silence with policy Cluster",
            node_port("work-1"),
            timeout(),
            vec![expects(&["10.90.0.12"])],
            false,
            (true, true),
        ),
        (
            "an answer instead of silence",
            node_port("work-1"),
            seen(&[own]),
            vec![silence()],
            true,
            (false, true),
        ),
        (
            "unclear",
            external(),
            seen(&["203.0.113.9"]),
            vec![Expected::Unclear { reason: "ipvs".to_owned() }],
            true,
            (true, false),
        ),
        ("only reached", external(), Observed::Reached, vec![expects(&[own])], true, (false, false)),
        ("reached as a surprise", external(), Observed::Reached, vec![silence()], true, (false, true)),
    ] {
        let cell = cell(here(), own, to, observed, expected, is_local);
        assert_eq!((cell.wrong, cell.unexpected), verdict, "{what}: {cell:?}");
    }
}

#[test]
fn the_hop_that_changed_the_source_is_named() {
    let reason = "kube-proxy on node edge-1";
    let named =
        Expected::Seen { sources: vec![ip("10.244.1.1")], changed_by: Some(reason.to_owned()), reason: None };
    let external = || Destination::External { number: 0 };
    for (from, own, source, expected, hop) in [
        (Source::ThisMachine, "198.51.100.10", "10.244.1.1", vec![named.clone()], Some(reason)),
        (
            Source::ThisMachine,
            "198.51.100.10",
            "10.90.0.13",
            vec![named.clone()],
            Some("SNAT on node work-2"),
        ),
        (
            Source::ThisMachine,
            "192.168.1.5",
            "203.0.113.9",
            vec![named],
            Some("NAT or a proxy before the first node"),
        ),
        (pod(), "10.244.2.5", "10.90.0.12", vec![], Some("SNAT on node work-1")),
        (pod(), "10.244.2.5", "127.0.0.6", vec![], Some("the sidecar of the target")),
        (pod(), "10.244.2.5", "10.244.2.5", vec![], None),
    ] {
        let cell = cell(from, own, external(), seen(&[source]), expected, false);
        assert_eq!(cell.changed_by.as_deref(), hop, "{source}");
    }
}
