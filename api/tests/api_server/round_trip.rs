//! All fields of the types survive a round trip through the API server.

use isp_api::{
    IngressSourceNode, IngressSourcePreserve,
    node::{IngressSourceNodeSpec, IngressSourceNodeStatus},
    preserve::IngressSourcePreserveStatus,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray,
};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};

use crate::{client, control_plane, kubectl};

fn preserve() -> Value {
    let selector = json!({
        "matchLabels": { "role": "edge" },
        "matchExpressions": [{ "key": "zone", "operator": "In", "values": ["a", "b"] }],
    });
    json!({
        "apiVersion": "sourcepreserve.io/v1alpha1",
        "kind": "IngressSourcePreserve",
        "metadata": { "name": "everything" },
        "spec": {
            "ingressNodes": { "selector": selector },
            "services": [{ "namespace": "a", "name": "b" }, { "namespace": "a", "selector": selector }],
            "mode": "Filter",
            "elsewhere": "Hidden",
            "nodePools": [{ "name": "workers", "selector": selector, "mode": "Filter" }],
            "rollout": { "maxUnavailable": 3, "paused": true, "progressDeadlineSeconds": 60, "onFailure": "Pause" },
            "sidecars": [
                { "namespaceSelector": selector, "podSelector": selector, "interceptionMode": "TPROXY", "via": "Policy" },
                { "namespaceSelector": selector, "podSelector": selector, "redirect": redirect(), "via": "Webhook" },
                { "namespaceSelector": selector, "podSelector": selector, "redirect": other_redirect(), "via": "Webhook" },
            ],
            "serviceLabel": { "key": "example.com/preserve", "value": "everything" },
            "kubeProxy": { "namespace": "kube-system", "daemonSet": "kube-proxy" },
            "whenNoIngressEndpoint": "FallBack",
            "conflictPolicy": "Force",
            "deletionPolicy": "Retain",
        },
        "status": {
            "observedGeneration": 1,
            "phase": "Ready",
            "summary": { "services": "1/1", "nodes": "12/13" },
            "conditions": [condition()],
            "services": [{
                "namespace": "a",
                "name": "b",
                "original": { "externalTrafficPolicy": "Cluster", "healthCheckNodePort": 30123 },
                "addresses": ["192.0.2.1", "2001:db8::1"],
                "ingressEndpoints": 2,
                "ingressEndpointsSince": "2026-01-01T00:00:00Z",
                "state": "Preserved",
                "servedBeside": true,
                "message": "as it should be",
            }],
            "ingressNodes": ["edge-1", "edge-2"],
            "nodePools": [{ "name": "workers", "nodes": 13, "handedOver": 12, "ready": 12, "failed": 1, "updated": 11 }],
            "leftOut": { "count": 1, "nodes": ["windows-1"] },
            "kubeProxy": { "namespace": "kube-system", "daemonSet": "kube-proxy", "keptOff": 1, "generation": 3 },
            "sidecars": {
                "matching": 5, "consistent": 4, "stale": 1,
                "restart": [{ "namespace": "a", "kind": "Deployment", "name": "b", "pods": 1 }],
            },
        },
    })
}

fn redirect() -> Value {
    json!({
        "inbound": { "method": "TPROXY", "port": 15006, "exceptPorts": [9090] },
        "outbound": {
            "port": 15001, "destinations": ["10.0.0.0/8"], "ports": [80],
            "exceptDestinations": ["10.1.0.0/16"],
        },
        "exempt": { "uids": [1], "gids": [2], "marks": [3], "cgroup": { "path": "a/b" } },
        "initOrder": "First",
    })
}

/// The fields that do not fit those of [`redirect`].
fn other_redirect() -> Value {
    json!({
        "inbound": { "method": "REDIRECT", "port": 15006, "ports": [8080] },
        "outbound": { "port": 15001, "exceptPorts": [22] },
        "exempt": { "cgroup": { "classId": 4 } },
        "initOrder": "Last",
    })
}

fn node() -> Value {
    json!({
        "apiVersion": "sourcepreserve.io/v1alpha1",
        "kind": "IngressSourceNode",
        "metadata": { "name": "node-1.example.com" },
        "status": {
            "pool": "workers",
            "revision": "0123456789",
            "mode": "Filter",
            "views": [{
                "object": "everything",
                "uid": "0000-1111",
                "generation": 1,
                "view": "Hidden",
                "received": true,
                "services": ["istio-system/istio-ingressgateway"],
                "programmed": true,
            }],
            "active": true,
            "served": 1,
            "lastSync": "2026-01-02T03:04:05Z",
            "conditions": [condition()],
        },
    })
}

fn condition() -> Value {
    json!({
        "type": "Ready",
        "status": "True",
        "reason": "Done",
        "message": "all of it",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
        "observedGeneration": 1,
    })
}

/// The paths of all schema properties that the values do not set.
fn unset(path: &str, schema: &JSONSchemaProps, values: &[&Value]) -> Vec<String> {
    let mut missing = Vec::new();
    for (name, property) in schema.properties.iter().flatten() {
        let path = format!("{path}.{name}");
        let set: Vec<&Value> = values.iter().filter_map(|value| value.get(name)).collect();
        if set.is_empty() {
            missing.push(path);
            continue;
        }
        missing.extend(unset(&path, property, &set));
        if let Some(JSONSchemaPropsOrArray::Schema(items)) = &property.items {
            let all: Vec<&Value> = set.iter().filter_map(|list| list.as_array()).flatten().collect();
            missing.extend(unset(&format!("{path}[]"), items, &all));
        }
    }
    missing
}

#[tokio::test]
async fn the_examples_here_set_every_field_that_there_is() {
    for (crd, example) in isp_api::crd::all().into_iter().zip([preserve(), node()]) {
        let schema = crd.spec.versions[0].schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
        assert_eq!(unset("", schema, &[&example]), [""; 0], "{}", crd.spec.names.kind);
    }
}

#[tokio::test]
async fn an_ingress_source_preserve_with_every_field_comes_back_as_it_went() {
    let api: Api<IngressSourcePreserve> = Api::all(client().await);
    let example = preserve();
    let object: IngressSourcePreserve = serde_json::from_value(example.clone()).unwrap();
    let mut created = api.create(&PostParams::default(), &object).await.unwrap();
    assert_eq!(created.status, None, "only the status subresource writes the status");
    created.status = object.status.clone();
    api.replace_status("everything", &PostParams::default(), &created).await.unwrap();

    let found = api.get("everything").await.unwrap();
    assert_eq!((&found.spec, &found.status), (&object.spec, &object.status));
    let found = serde_json::to_value(&found).unwrap();
    assert_eq!((&found["spec"], &found["status"]), (&example["spec"], &example["status"]));

    let row = kubectl(control_plane().await, &["get", "isp", "everything", "--no-headers"]).await;
    let columns: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(columns[..4], ["everything", "Ready", "1/1", "12/13"]);
    api.delete("everything", &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn an_ingress_source_node_with_every_field_comes_back_as_it_went() {
    let api: Api<IngressSourceNode> = Api::all(client().await);
    let example = node();
    let status: IngressSourceNodeStatus = serde_json::from_value(example["status"].clone()).unwrap();
    let name = example["metadata"]["name"].as_str().unwrap();
    let object = IngressSourceNode::new(name, IngressSourceNodeSpec {});
    let mut created = api.create(&PostParams::default(), &object).await.unwrap();
    created.status = Some(status.clone());
    api.replace_status(name, &PostParams::default(), &created).await.unwrap();

    let found = api.get(name).await.unwrap();
    assert_eq!(found.status.as_ref(), Some(&status));
    assert_eq!(serde_json::to_value(&found).unwrap()["status"], example["status"]);

    let row = kubectl(control_plane().await, &["get", "isn", name, "--no-headers"]).await;
    let columns: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(columns[..4], [name, "workers", "Filter", "True"]);
    api.delete(name, &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn an_empty_status_is_written_as_an_empty_one() {
    assert_eq!(serde_json::to_value(IngressSourcePreserveStatus::default()).unwrap(), json!({}));
}
