use super::*;
use crate::model::{Destination, Flow, Outcome, Role, Source, SourceKind};

fn node(name: &str, pool: &str) -> Node {
    Node {
        name: name.to_owned(),
        pool: pool.to_owned(),
        role: Role::NonIngress,
        ready: true,
        addresses: vec![],
        remark: String::new(),
    }
}

/// A pod's path to the ClusterIP with one hop.
fn from_pod(node: &str, outcome: Outcome) -> Path {
    let flow = |source: &str| Flow { source: source.to_owned(), destination: "10.96.0.7:80".to_owned() };
    let hop = Hop {
        place: format!("node {node}"),
        actor: "kube-proxy".to_owned(),
        reason: format!("it is {node}"),
        before: flow(node),
        after: flow(node),
        rules: vec![],
        assumed: false,
    };
    Path {
        service: "web/frontend".to_owned(),
        from: Source { kind: SourceKind::Pod, address: node.to_owned(), nodes: vec![node.to_owned()] },
        to: Destination { kind: WayKind::ClusterIp, address: "10.96.0.7:80".to_owned(), nodes: vec![] },
        journeys: vec![Journey { outcome, arrives: None, line: String::new(), hops: vec![hop] }],
    }
}

fn to_node_port(node: &str, outcome: Outcome) -> Path {
    let mut path = from_pod(node, outcome);
    path.from = Source { kind: SourceKind::Outside, address: "198.51.100.10".to_owned(), nodes: vec![] };
    path.to = Destination {
        kind: WayKind::NodePort,
        address: format!("{node}:30080"),
        nodes: vec![node.to_owned()],
    };
    path
}

fn groups(paths: &[Path]) -> Vec<Vec<&str>> {
    let names = paths.iter().map(|path| path.from.nodes.iter().chain(&path.to.nodes));
    names.map(|names| names.map(String::as_str).collect()).collect()
}

#[test]
fn nodes_that_behave_alike_are_one_path_with_the_first_as_the_example() {
    let nodes = [node("a", "default"), node("b", "default"), node("c", "default")];
    let merged = merge(&nodes, ["a", "b", "c"].map(|name| from_pod(name, Outcome::Preserved)).to_vec());
    assert_eq!(groups(&merged), [["a", "b", "c"]]);
    assert_eq!(merged[0].journeys[0].hops[0].reason, "it is a");
}

#[test]
fn another_outcome_another_pool_or_another_actor_is_another_path() {
    let nodes = [node("a", "default"), node("b", "default"), node("c", "gpu"), node("d", "default")];
    let mut paths = ["a", "c", "d"].map(|name| from_pod(name, Outcome::Preserved)).to_vec();
    paths[2].journeys[0].hops[0].actor = "agent".to_owned();
    paths.push(from_pod("b", Outcome::Lost));
    assert_eq!(groups(&merge(&nodes, paths)), [["a"], ["c"], ["d"], ["b"]]);
}

#[test]
fn a_node_that_differs_in_one_path_differs_in_all_so_that_groups_do_not_overlap() {
    let nodes = [node("a", "default"), node("b", "default"), node("c", "default")];
    let mut paths = ["a", "b", "c"].map(|name| from_pod(name, Outcome::Preserved)).to_vec();
    paths.extend(["a", "b"].map(|name| to_node_port(name, Outcome::Dropped)));
    paths.push(to_node_port("c", Outcome::Unreachable));
    assert_eq!(groups(&merge(&nodes, paths)), [vec!["a", "b"], vec!["c"], vec!["a", "b"], vec!["c"]]);
}

#[test]
fn addresses_of_other_kinds_than_node_ports_are_not_merged() {
    let nodes = [node("a", "default")];
    let mut other = from_pod("a", Outcome::Preserved);
    other.to.address = "10.96.0.8:80".to_owned();
    assert_eq!(merge(&nodes, vec![from_pod("a", Outcome::Preserved), other]).len(), 2);
}

#[test]
fn a_node_that_is_not_listed_does_not_get_lost() {
    let merged = merge(&[], vec![from_pod("a", Outcome::Preserved)]);
    assert_eq!(groups(&merged), [["a"]]);
}
