#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use k8s_openapi::api::core::v1::PodSpec;
use serde_json::{Value, json};

use crate::cluster::Node;
use crate::placement::admits;

fn admitted(pod: Value) -> Vec<&'static str> {
    let mut pod = pod;
    pod["containers"] = json!([]);
    let pod: PodSpec = serde_json::from_value(pod).unwrap();
    let labels = |labels: &[(&str, &str)]| Node {
        labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        ..Node::default()
    };
    let nodes = [
        ("a", labels(&[("os", "linux"), ("cores", "4")])),
        ("b", labels(&[("os", "linux"), ("cores", "8"), ("pool", "x")])),
        ("c", labels(&[("os", "windows")])),
    ];
    nodes.iter().filter(|(name, node)| admits(&pod, name, node)).map(|(name, _)| *name).collect()
}

fn required(terms: &Value) -> Value {
    let terms = json!({"nodeSelectorTerms": terms});
    json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}})
}

fn expression(key: &str, operator: &str, values: &[&str]) -> Value {
    required(&json!([{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}]))
}

#[test]
fn pods_run_where_selector_and_affinity_admit_them() {
    for (pod, nodes) in [
        (json!({}), &["a", "b", "c"][..]),
        (json!({"nodeSelector": {"os": "linux"}}), &["a", "b"]),
        (expression("os", "In", &["windows", "beos"]), &["c"]),
        (expression("os", "NotIn", &["windows"]), &["a", "b"]),
        (expression("pool", "Exists", &[]), &["b"]),
        (expression("pool", "DoesNotExist", &[]), &["a", "c"]),
        (expression("cores", "Gt", &["4"]), &["b"]),
        (expression("cores", "Lt", &["8"]), &["a"]),
        (expression("os", "Like", &["linux"]), &[]),
        (required(&json!([{}])), &[]),
        (
            required(&json!([
                {"matchExpressions": [{"key": "pool", "operator": "Exists"}]},
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["c"]}]},
            ])),
            &["b", "c"],
        ),
    ] {
        assert_eq!(admitted(pod.clone()), nodes, "{pod}");
    }
}
