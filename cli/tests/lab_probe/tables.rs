//! The tables, cell by cell. They say what the demo's tables say about the same cluster.

use std::path::Path;

use serde_json::{Value, json};

use super::world::{SERVICE, World};

fn cells(told: &Value) -> &Vec<Value> {
    told["cells"].as_array().unwrap()
}

/// The cells from this kind of source to this kind of destination, which may have a node.
fn between<'a>(told: &'a Value, from: &str, to: &str) -> Vec<&'a Value> {
    let (kind, node) = to.split_once(' ').map_or((to, None), |(kind, node)| (kind, Some(node)));
    let fits = |cell: &&Value| {
        cell["from"]["kind"] == from
            && cell["to"]["kind"] == kind
            && node.is_none_or(|node| cell["to"]["node"] == node)
    };
    let found: Vec<&Value> = cells(told).iter().filter(fits).collect();
    assert!(!found.is_empty(), "{from} {to}: {told}");
    found
}

fn sources(cell: &Value) -> Vec<&str> {
    cell["observed"]["seen"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|seen| seen["source"].as_str().unwrap())
        .collect()
}

/// Without an object: the first node masquerades.
pub(crate) async fn are_lost(world: &World) {
    let canary = world.probe("canary").await;
    assert_eq!(canary["asExpected"], true, "{canary:#}");
    assert_eq!((&canary["preserved"], &canary["externalTrafficPolicy"]), (&json!(false), &json!("Cluster")));
    assert!(canary["notes"].to_string().contains("no external address"), "{canary:#}");
    let own = world.probe("own").await;
    assert_eq!(own["asExpected"], true, "{own:#}");
    for told in [&canary, &own] {
        for cell in between(told, "pod", "node-port work-2") {
            // A node masquerades to its own address on the fabric, for an endpoint elsewhere.
            assert_eq!(sources(cell), ["10.90.0.13"], "{cell}");
            let own_node = cell["from"]["node"] == "work-2";
            assert_eq!(cell["wrong"], !own_node, "{cell}");
        }
        for cell in between(told, "pod", "cluster-ip") {
            assert_eq!(cell["wrong"], false, "{cell}");
        }
    }
    for cell in between(&own, "host", "external") {
        assert_eq!(cell["wrong"], false, "its own node intercepts: {cell}");
    }
}

/// With an object: the source IP arrives through the ingress node, and other nodes drop.
pub(crate) async fn arrive(world: &World, target: &str) {
    let told = world.probe(target).await;
    assert_eq!((&told["preserved"], &told["asExpected"]), (&json!(true), &json!(true)), "{told:#}");
    assert_eq!(told["externalTrafficPolicy"], "Local");
    for from in ["pod", "host"] {
        for cell in between(&told, from, "node-port edge-1") {
            assert_eq!(sources(cell).len(), 1, "{cell}");
        }
    }
    if target == "own" {
        for cell in between(&told, "host", "external") {
            assert_eq!(cell["observed"]["seen"][0]["whose"], "own", "{cell}");
        }
    }
}

/// The comparison with the saved table names what has changed.
pub(crate) async fn have_changed(world: &World, before: &Path) {
    let compare = ["--target", "own", "--compare", before.to_str().unwrap()];
    let ended = world.run(&[&SERVICE[..], &compare].concat()).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("Since the saved run:"), "{}", ended.stdout);
    assert!(ended.stdout.contains("pod on work-1 to NodePort of edge-1"), "{}", ended.stdout);
    assert!(ended.stdout.contains("an IP of node edge-1 !  ->"), "{}", ended.stdout);
}
