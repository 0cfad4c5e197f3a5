//! The objects that an agent and its kube-proxy need, and their tokens.

use std::fs;

use isp_lab::ControlPlane;
use serde_json::{Value, json};

use super::NODE;
use crate::control_plane::{kubectl, kubectl_with_input};
use crate::repository;

/// Installs the objects that an agent and a kube-proxy need.
pub async fn install(cluster: &ControlPlane) {
    let rights = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "kube-proxy", "namespace": "kube-system"}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "kubeadm:node-proxier"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node-proxier"},
            "subjects": [{"kind": "ServiceAccount", "name": "kube-proxy", "namespace": "kube-system"}],
        },
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}},
    ]});
    let apply = ["apply", "--server-side", "--force-conflicts", "-f"];
    for part in ["crds", "manifests/agent"] {
        kubectl(cluster, &[&apply[..], &[&repository::path(part)]].concat()).await;
    }
    kubectl_with_input(cluster, &[&apply[..], &["-"]].concat(), &rights).await;
}

/// Creates a token of an account in `kube-system`, with these flags of `kubectl create token`.
pub async fn token(cluster: &ControlPlane, account: &str, flags: &[&str]) -> String {
    let command = ["-n", "kube-system", "create", "token", account];
    kubectl(cluster, &[&command[..], flags].concat()).await.trim().to_owned()
}

/// Returns the cluster in the administrator's kubeconfig: the API server's address and CA.
pub fn api_server(cluster: &ControlPlane) -> Value {
    let admin: Value = serde_json::from_str(&fs::read_to_string(cluster.kubeconfig()).unwrap()).unwrap();
    admin["clusters"][0]["cluster"].clone()
}
