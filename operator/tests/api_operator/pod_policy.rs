//! The policy decides as the Rust function does: the same table, evaluated by the API server.

use std::collections::BTreeMap;

use isp_api::preserve::Sidecars;
use isp_lab::ControlPlane;
use isp_plan::build::pod_policy;
use isp_testkit::control_plane::kubectl;
use isp_testkit::sidecars::tried::{make_namespace, try_pod};
use isp_testkit::sidecars::{MODE, Row, rows};
use isp_testkit::until;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};

const NAME: &str = "sourcepreserve-shop-0";

#[tokio::test]
async fn the_policy_decides_every_pod_of_the_table_as_the_function_does() {
    let cluster = ControlPlane::shared().await.unwrap();
    let client = cluster.client().unwrap();
    let entry: Sidecars = serde_json::from_value(json!({
        "namespaceSelector": {"matchLabels": {"team": "shop"}},
        "podSelector": {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["batch"]}]},
        "via": "Policy",
    }))
    .unwrap();
    apply(&client, pod_policy::policy(NAME, &entry, "sourcepreserve-system").unwrap()).await;
    apply(&client, pod_policy::binding(NAME)).await;
    let rows = rows();
    until_it_works(&client).await;
    let mut wrong = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let namespace = make_namespace(&client, index, row).await;
        let created = try_pod(&client, &namespace, row, spec()).await;
        let annotations = created.metadata.annotations.unwrap_or_default();
        let (mode, expected) = (annotations.get(MODE).map(String::as_str), row.mode());
        if mode != expected {
            wrong.push(format!("{}: {mode:?} instead of {expected:?}", row.name));
        }
        let others = |annotations: &BTreeMap<String, String>| {
            let mut annotations = annotations.clone();
            annotations.remove(MODE);
            annotations
        };
        assert_eq!(others(&annotations), others(&row.annotations), "{}: the others stay", row.name);
    }
    assert_eq!(wrong, Vec::<String>::new(), "of {} pods", rows.len());
    for kind in ["mutatingadmissionpolicybinding", "mutatingadmissionpolicy"] {
        kubectl(cluster, &["delete", kind, NAME]).await;
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

/// The spec of a pod that every namespace admits.
fn spec() -> Value {
    json!({
        "automountServiceAccountToken": false,
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{
            "name": "app", "image": "none",
            "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
        }],
    })
}

/// The API server enforces a policy some time after it was created.
async fn until_it_works(client: &Client) {
    let probe = json!({
        "name": "probe", "namespaceName": "probe", "labels": {"sidecar.istio.io/inject": "true"}, "expect": "Set",
    });
    let probe: Row = serde_json::from_value(probe).unwrap();
    let namespace = make_namespace(client, 0, &probe).await;
    until("the policy works", async || {
        try_pod(client, &namespace, &probe, spec()).await.metadata.annotations.is_some()
    })
    .await;
}
