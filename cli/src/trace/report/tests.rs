use std::net::IpAddr;

use isp_paths::{Address, Flow, Key};

use super::*;

fn address(text: &str) -> Address {
    Address::exact(text.parse::<IpAddr>().unwrap())
}

fn flow(source: &str, destination: &str) -> Flow {
    Flow { source: address(source), destination: destination.parse().unwrap() }
}

/// A way through a node that replaces the source, to a pod.
fn replaced(node: &str, own: &str, pod: u8) -> Path {
    let sent = flow("198.51.100.10", "192.0.2.10:80");
    let after = flow(own, &format!("10.244.1.{pod}:8080"));
    let reason = "external IP of Service shop/web: redirected to an endpoint; the source IP becomes the node's (SNAT), \
                  because externalTrafficPolicy is Cluster";
    let hop = Hop {
        place: Place::Node(node.to_owned()),
        actor: Actor::KubeProxy,
        reason: reason.to_owned(),
        rules: Vec::new(),
        before: sent.clone(),
        after: after.clone(),
        assumed: false,
    };
    let delivery = Delivery {
        pod: Some(Key::new("shop", format!("web-{pod}"))),
        node: Some("edge-1".to_owned()),
        destination: after.destination,
        network: after.source.clone(),
        proxy: None,
        application: Some(after.source),
        gateway: false,
        kept: false,
    };
    Path { sent, hops: vec![hop], outcome: Outcome::Delivered(Box::new(delivery)) }
}

fn report(paths: Vec<Path>) -> Report {
    Report {
        from: "198.51.100.10".to_owned(),
        to: "192.0.2.10:80".to_owned(),
        protocol: "tcp",
        fine: false,
        gaps: Vec::new(),
        paths,
    }
}

#[test]
fn ways_that_differ_in_names_only_are_told_once() {
    let mut paths = Vec::new();
    for number in 2..=200 {
        for pod in [5, 6] {
            paths.push(replaced(&format!("work-{number}"), &format!("10.90.0.{number}"), pod));
        }
    }
    assert_eq!(
        text(&report(paths), None),
        "\
tcp 198.51.100.10 to 192.0.2.10:80
  1          node work-2, kube-proxy: external IP of Service shop/web: redirected to an endpoint; the source IP becomes the node's (SNAT), because externalTrafficPolicy is Cluster
             source 198.51.100.10 -> 10.90.0.2
             destination 192.0.2.10:80 -> 10.244.1.5:8080
  result     delivered to pod shop/web-5 on node edge-1; the application sees 10.90.0.2 instead of 198.51.100.10: node work-2 applied SNAT because externalTrafficPolicy is Cluster
  also       397 ways of the same kind through node work-10, work-100 and 196 more to pod shop/web-6
"
    );
}

#[test]
fn different_ways_are_numbered_and_gaps_are_named() {
    let mut dropped = replaced("work-2", "10.90.0.2", 5);
    dropped.outcome = Outcome::Dropped { reason: "no endpoint\u{1b}".to_owned() };
    let mut report = report(vec![replaced("work-1", "10.90.0.1", 5), dropped]);
    report.gaps.push("pods were not read".to_owned());
    let text = text(&report, Some(80));
    assert!(text.starts_with("way 1: tcp 198.51.100.10 to 192.0.2.10:80\n"), "{text}");
    assert!(text.contains("\nway 2: "), "{text}");
    assert!(text.contains("dropped, the client gets no answer: no endpoint\u{fffd}\n"), "{text}");
    assert!(text.ends_with("\nnot known: pods were not read\n"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn more_ways_than_fit_are_counted() {
    let paths = (1..=20).map(|number| {
        let mut path = replaced("work-1", "10.90.0.1", 5);
        path.outcome = Outcome::Unclear { reason: format!("reason {number}") };
        path
    });
    let text = text(&report(paths.collect()), None);
    assert!(text.contains("\nand 8 more ways (-o json shows all"), "{text}");
}
