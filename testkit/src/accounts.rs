//! A `ServiceAccount` with chosen permissions.

use isp_lab::ControlPlane;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

use crate::control_plane::apply;
use crate::rights::user;
use crate::wait::until;

const RBAC: &str = "rbac.authorization.k8s.io";

/// Grants the rules of a ClusterRole to a ServiceAccount in all namespaces, and waits until the API
/// server goes by them, which takes a moment.
pub async fn grant(cluster: &ControlPlane, (namespace, name): (&str, &str), rules: &Value) {
    let role = json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules,
    });
    let binding = json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    });
    apply(cluster, &role).await;
    apply(cluster, &binding).await;
    let reviews: Api<SubjectAccessReview> = Api::all(cluster.client().unwrap());
    for attributes in permissions(rules) {
        let review = json!({"spec": {"user": user(namespace, name), "resourceAttributes": attributes}});
        let review: SubjectAccessReview = serde_json::from_value(review).unwrap();
        until(&format!("{namespace}/{name} may {attributes}"), async || {
            let status = reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap();
            if status.allowed { Ok(()) } else { Err(status) }
        })
        .await;
    }
}

/// The single permissions of the rules.
fn permissions(rules: &Value) -> Vec<Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut found = Vec::new();
    for rule in list(rules) {
        for resource in list(&rule["resources"]) {
            for verb in list(&rule["verbs"]) {
                found.push(json!({
                    "group": rule["apiGroups"][0], "resource": resource, "verb": verb,
                    "name": rule["resourceNames"][0],
                }));
            }
        }
    }
    found
}
