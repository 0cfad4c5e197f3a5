//! Creates the table's pods on an API server by dry run; none is stored.

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::Row;
use crate::wait::until;

/// Creates the namespace of a row, named by its index unless the row names it.
pub async fn make_namespace(client: &Client, index: usize, row: &Row) -> String {
    let name = row.namespace_name.clone().unwrap_or_else(|| format!("row-{index}"));
    let metadata = json!({"name": name, "labels": row.namespace_labels()});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.patch(&name, &PatchParams::apply("test").force(), &Patch::Apply(namespace)).await.unwrap();
    name
}

/// The row's pod with this spec, as it would be created. Retries until the namespace's
/// ServiceAccount exists.
pub async fn try_pod(client: &Client, namespace: &str, row: &Row, mut spec: Value) -> Pod {
    spec["hostNetwork"] = json!(row.host_network);
    let metadata = json!({"name": "pod", "labels": row.labels, "annotations": row.annotations});
    let pod = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let only_tried = PostParams { dry_run: true, ..PostParams::default() };
    until(&format!("{} in {namespace}", row.name), async || pods.create(&only_tried, &pod).await).await
}
