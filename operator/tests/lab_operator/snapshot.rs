//! All objects that the operator changes, for comparison before and after.
//!
//! It omits fields that change by themselves or must change: resource versions, generations, the
//! times in `managedFields` and the order that depends on them, the status of nodes and DaemonSets,
//! and the DaemonSet controller's count of template changes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use http::Request;
use isp_api::{IngressSourceNode, IngressSourcePreserve};
use isp_lab::Lab;
use k8s_openapi::api::apps::v1::DaemonSet;
use kube::Api;
use kube::api::ListParams;
use serde_json::Value;

use super::harness::eventually;

const TEMPLATE_CHANGES: &str = "deprecated.daemonset.template.generation";

/// Objects by their path.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Snapshot(BTreeMap<String, Value>);

impl Snapshot {
    /// Takes a snapshot once the cluster has stopped changing.
    pub(crate) async fn take(lab: &Lab) -> Self {
        let mut before = Self::now(lab).await;
        eventually("the cluster stays as it is", async || {
            tokio::time::sleep(Duration::from_secs(2)).await;
            let now = Self::now(lab).await;
            std::mem::replace(&mut before, now.clone()) == now
        })
        .await;
        before
    }

    async fn now(lab: &Lab) -> Self {
        let mut objects = BTreeMap::new();
        for path in [
            "/api/v1/namespaces/web/services/frontend",
            "/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy",
            "/api/v1/namespaces/kube-system/configmaps/kube-proxy",
        ] {
            objects.insert(path.to_owned(), read(lab, path).await);
        }
        let nodes = read(lab, "/api/v1/nodes").await;
        for node in nodes["items"].as_array().unwrap() {
            objects.insert(format!("/api/v1/nodes/{}", node["metadata"]["name"]), node.clone());
        }
        for (path, object) in &mut objects {
            normalise(path, object);
        }
        Self(objects)
    }

    /// Asserts that everything is restored and nothing of ours is left.
    pub(crate) async fn expect_again(&self, lab: &Lab) {
        let mut difference = String::new();
        let started = std::time::Instant::now();
        loop {
            let now = Self::now(lab).await;
            if now == *self {
                break;
            }
            difference.clear();
            for (path, object) in &self.0 {
                describe(path, object, now.0.get(path).unwrap_or(&Value::Null), &mut difference);
            }
            // Controllers may still make a last change.
            assert!(started.elapsed() < Duration::from_secs(10), "not as before:\n{difference}");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        nothing_is_left(lab).await;
    }

    /// Whether the Service is unchanged.
    pub(crate) async fn has_the_same_service(&self, lab: &Lab) -> bool {
        let path = "/api/v1/namespaces/web/services/frontend";
        self.0[path] == Self::now(lab).await.0[path]
    }
}

async fn nothing_is_left(lab: &Lab) {
    let all = ListParams::default();
    let objects: Api<IngressSourcePreserve> = Api::all(lab.client());
    assert!(objects.list(&all).await.unwrap().items.is_empty());
    let reports: Api<IngressSourceNode> = Api::all(lab.client());
    assert!(reports.list(&all).await.unwrap().items.is_empty());
    assert_eq!(super::admission::names(lab).await, [""; 0]);
    let sets: Api<DaemonSet> = Api::namespaced(lab.client(), "kube-system");
    let names: Vec<_> =
        sets.list(&all).await.unwrap().items.into_iter().filter_map(|set| set.metadata.name).collect();
    assert_eq!(names, ["kube-proxy"]);
    eventually("kube-proxy is ready everywhere", async || {
        let set = sets.get("kube-proxy").await.unwrap();
        let status = set.status.unwrap_or_default();
        let nodes = status.desired_number_scheduled;
        status.observed_generation == set.metadata.generation
            && nodes == 3
            && status.updated_number_scheduled == Some(nodes)
            && status.number_available == Some(nodes)
    })
    .await;
}

async fn read(lab: &Lab, path: &str) -> Value {
    let request = Request::get(path).body(Vec::new()).unwrap();
    lab.client().request(request).await.unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn normalise(path: &str, object: &mut Value) {
    let says_its_state = ["/nodes/", "/daemonsets/"].iter().any(|kind| path.contains(kind));
    let fields = object.as_object_mut().unwrap();
    if says_its_state {
        fields.remove("status");
    }
    let metadata = fields["metadata"].as_object_mut().unwrap();
    metadata.remove("resourceVersion");
    metadata.remove("generation");
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(TEMPLATE_CHANGES);
    }
    if let Some(managed) = metadata.get_mut("managedFields").and_then(Value::as_array_mut) {
        managed.retain(|entry| !(says_its_state && entry["subresource"] == "status"));
        for entry in managed.iter_mut() {
            entry.as_object_mut().unwrap().remove("time");
        }
        managed.sort_by_key(ToString::to_string);
    }
}

/// The differences between two values, one line each.
fn describe(place: &str, before: &Value, after: &Value, lines: &mut String) {
    match (before, after) {
        _ if before == after => {}
        (Value::Object(one), Value::Object(other)) => {
            let keys: std::collections::BTreeSet<_> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let of =
                    |object: &serde_json::Map<String, Value>| object.get(key).cloned().unwrap_or_default();
                describe(&format!("{place}.{key}"), &of(one), &of(other), lines);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (before, after)) in one.iter().zip(other).enumerate() {
                describe(&format!("{place}[{index}]"), before, after, lines);
            }
        }
        _ => writeln!(lines, "{place}: {before} became {after}").unwrap(),
    }
}
