use isp_plan::Cluster;
use isp_plan::action::NodeShape;
use isp_plan::cluster::{Identity, Node};
use isp_plan::record::{Failure, Handover};
use k8s_openapi::jiff::Timestamp;
use prometheus_client::encoding::text::encode;

use super::*;

fn text(metrics: &Metrics) -> String {
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    text
}

#[test]
fn nodes_are_counted_by_where_they_are() {
    let handover = Some(Handover::new("default", Timestamp::UNIX_EPOCH));
    let failure =
        Some(Failure { pool: "default".to_owned(), revision: String::new(), reason: String::new() });
    let pool = Some("default".to_owned());
    let nodes = [
        Node::default(),
        Node { pool: pool.clone(), handover: handover.clone(), ..Node::default() },
        Node { pool: pool.clone(), ..Node::default() },
        Node { pool, ..Node::default() },
        Node { handover, ..Node::default() },
        Node { failure, ..Node::default() },
    ];
    let nodes = nodes.into_iter().enumerate().map(|(number, node)| (number.to_string(), node));
    let metrics = Metrics::default();
    metrics.cluster(&Cluster { nodes: nodes.collect(), ..Cluster::default() });
    let text = text(&metrics);
    for (state, count) in [("KubeProxy", 1), ("GoingOver", 1), ("Agent", 2), ("GoingBack", 1), ("Failed", 1)]
    {
        let line = format!("isp_operator_nodes{{state=\"{state}\"}} {count}\n");
        assert!(text.contains(&line), "{line} in {text}");
    }
}

#[test]
fn a_handover_counts_when_it_ends_and_says_how_long_it_took() {
    let metrics = Metrics::default();
    let action = |step| Action::ShapeNode {
        node: "a".to_owned(),
        identity: Identity::default(),
        shape: NodeShape::default(),
        step,
    };
    let age = Some(Duration::from_secs(3));
    for step in [NodeStep::HandOver, NodeStep::HandedOver, NodeStep::RollBack, NodeStep::Release] {
        metrics.handover(&action(step), age);
        metrics.action(&action(step), Outcome::Done);
    }
    let text = text(&metrics);
    for line in [
        "isp_operator_handovers_total{direction=\"Over\",outcome=\"Done\"} 1",
        "isp_operator_handovers_total{direction=\"Over\",outcome=\"Failed\"} 1",
        "isp_operator_handover_duration_seconds_sum{direction=\"Over\"} 3.0",
        "isp_operator_handover_duration_seconds_count{direction=\"Over\"} 1",
        "isp_operator_actions_total{action=\"hand-over-node\",outcome=\"Done\"} 1",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert!(!text.contains("direction=\"Back\""), "{text}");
}
