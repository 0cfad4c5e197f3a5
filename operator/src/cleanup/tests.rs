use isp_plan::Key;
use isp_plan::cluster::{DaemonSet, Node, Report, Service};
use isp_plan::record::Handover;
use k8s_openapi::jiff::Timestamp;
use serde_json::json;

use super::*;

fn pool() -> DaemonSet {
    let object = serde_json::from_value(json!({
        "metadata": {"name": "proxy-agent-default-1", "namespace": "kube-system"},
        "spec": {
            "selector": {},
            "template": {"spec": {
                "initContainers": [{"name": "first", "image": "other:1"}, {"name": "proxy-agent", "image": "agent:7"}],
                "containers": [{"name": "kube-proxy", "image": "kube-proxy:1"}],
            }},
        },
    }));
    DaemonSet { made: true, ..observe::daemon_set(&object.unwrap()).unwrap() }
}

#[test]
fn an_untouched_cluster_has_nothing_left() {
    let cluster = Cluster {
        services: [(Key::new("shop", "web"), Service::default())].into(),
        nodes: [("work-1".to_owned(), Node::default())].into(),
        ..Cluster::default()
    };
    assert!(leftovers(&cluster).is_empty());
}

#[test]
fn whatever_tells_of_a_change_is_named() {
    let us = Owner { manager: "sourcepreserve-operator".to_owned(), applies: true, ..Owner::default() };
    let handover = Some(Handover::new("default", Timestamp::UNIX_EPOCH));
    let cluster = Cluster {
        services: [(Key::new("shop", "web"), Service { owners: vec![us], ..Service::default() })].into(),
        nodes: [
            ("work-1".to_owned(), Node { pool: Some("default".to_owned()), ..Node::default() }),
            ("work-2".to_owned(), Node { handover, ..Node::default() }),
        ]
        .into(),
        reports: [("work-1".to_owned(), Report::default())].into(),
        daemon_sets: [(Key::new("kube-system", "proxy-agent-default-1"), pool())].into(),
        ..Cluster::default()
    };
    assert_eq!(
        leftovers(&cluster),
        [
            "service/shop/web",
            "node/work-1",
            "node/work-2",
            "daemonset/kube-system/proxy-agent-default-1",
            "ingresssourcenode/work-1"
        ]
    );
}
