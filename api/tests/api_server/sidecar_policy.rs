//! The policy decides as the function does: the same table, put to the API server.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use isp_api::preserve::Sidecars;
use isp_api::sidecar::policy;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{client, control_plane, kubectl};

const ANNOTATION: &str = "sidecar.istio.io/interceptionMode";
const NAME: &str = "sourcepreserve-shop-0";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    name: String,
    namespace_name: Option<String>,
    #[serde(default)]
    namespace: BTreeMap<String, String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    host_network: Option<bool>,
    expect: String,
}

#[tokio::test]
async fn the_policy_decides_every_pod_of_the_table_as_the_function_does() {
    let client = client().await;
    let entry: Sidecars = serde_json::from_value(json!({
        "namespaceSelector": {"matchLabels": {"team": "shop"}},
        "podSelector": {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["batch"]}]},
        "via": "Policy",
    }))
    .unwrap();
    apply(&client, policy::policy(NAME, &entry, "sourcepreserve-system")).await;
    apply(&client, policy::binding(NAME)).await;
    let rows: Vec<Row> = serde_yaml::from_str(include_str!("../sidecars.yaml")).unwrap();
    until_it_works(&client).await;
    let mut wrong = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let namespace = row.namespace_name.clone().unwrap_or_else(|| format!("row-{index}"));
        make_namespace(&client, &namespace, &row.namespace).await;
        let before = row.annotations.get(ANNOTATION).cloned();
        let expected = if row.expect == "Set" { Some("TPROXY".to_owned()) } else { before };
        let created = create(&client, &namespace, pod(row)).await;
        let annotations = created.metadata.annotations.unwrap_or_default();
        if annotations.get(ANNOTATION).cloned() != expected {
            wrong.push(format!("{}: {:?} instead of {expected:?}", row.name, annotations.get(ANNOTATION)));
        }
        let others = |annotations: &BTreeMap<String, String>| {
            let mut annotations = annotations.clone();
            annotations.remove(ANNOTATION);
            annotations
        };
        assert_eq!(others(&annotations), others(&row.annotations), "{}: the others stay", row.name);
    }
    assert_eq!(wrong, Vec::<String>::new(), "of {} pods", rows.len());
    for kind in ["mutatingadmissionpolicybinding", "mutatingadmissionpolicy"] {
        kubectl(control_plane().await, &["delete", kind, NAME]).await;
    }
}

async fn apply(client: &Client, object: Value) {
    let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", object["kind"].as_str().unwrap());
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    let mine = PatchParams {
        field_validation: Some(kube::api::ValidationDirective::Strict),
        ..PatchParams::apply("test").force()
    };
    api.patch(NAME, &mine, &Patch::Apply(object)).await.unwrap();
}

async fn make_namespace(client: &Client, name: &str, labels: &BTreeMap<String, String>) {
    let mut labels = labels.clone();
    labels.entry("team".to_owned()).or_insert_with(|| "shop".to_owned());
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    let api: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
    api.patch(name, &PatchParams::apply("test").force(), &Patch::Apply(namespace)).await.unwrap();
}

/// A pod that any namespace admits.
fn pod(row: &Row) -> Value {
    json!({
        "metadata": {"name": "pod", "labels": row.labels, "annotations": row.annotations},
        "spec": {
            "hostNetwork": row.host_network,
            "automountServiceAccountToken": false,
            "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": "app", "image": "none",
                "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
            }],
        },
    })
}

/// What would be created. The namespace's ServiceAccount comes a moment after it.
async fn create(client: &Client, namespace: &str, pod: Value) -> Pod {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let pod = serde_json::from_value(pod).unwrap();
    let only_tried = PostParams { dry_run: true, ..PostParams::default() };
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match api.create(&only_tried, &pod).await {
            Ok(created) => return created,
            Err(error) if Instant::now() > deadline => panic!("{namespace}: {error}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// The server begins to work with a policy some time after it is there.
async fn until_it_works(client: &Client) {
    make_namespace(client, "probe", &BTreeMap::new()).await;
    let deadline = Instant::now() + Duration::from_secs(30);
    let probe = json!({"labels": {"sidecar.istio.io/inject": "true"}, "name": "", "expect": ""});
    let row: Row = serde_json::from_value(probe).unwrap();
    while create(client, "probe", pod(&row)).await.metadata.annotations.is_none() {
        assert!(Instant::now() < deadline, "the policy does not work");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
