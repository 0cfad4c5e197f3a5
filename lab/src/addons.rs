//! The objects that a cluster gets once its API server is ready: labels and pod CIDRs of the nodes,
//! kube-proxy, CoreDNS, and a role for the API server's requests to kubelets. The layout is
//! kubeadm's. Pure: objects as JSON.

mod coredns;
pub(crate) mod kube_proxy;

use serde_json::{Value, json};

use crate::credentials::KUBELET_CLIENT;
use crate::lab::ProxyMode;
use crate::provision::KubernetesVersion;
use crate::topology::{KubeProxy, Node, Topology};

/// The label of ingress nodes.
pub(crate) const INGRESS_ROLE: &str = "node-role.kubernetes.io/ingress";

/// A node's labels and pod CIDRs. The kubelet registers the rest.
pub(crate) fn node(topology: &Topology, node: &Node) -> Value {
    let ranges = node.pods().cidrs(topology.families);
    let labels = if node.ingress { json!({INGRESS_ROLE: ""}) } else { json!({}) };
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name.as_str(), "labels": labels},
        "spec": {"podCIDR": ranges[0], "podCIDRs": ranges},
    })
}

/// All other objects, as one list.
pub(crate) fn cluster(
    topology: &Topology,
    mode: ProxyMode,
    version: KubernetesVersion,
    server: &str,
) -> Value {
    let mut items = vec![kubelet_access()];
    if !topology.kube_proxy_nodes(&[KubeProxy::DaemonSet]).is_empty() {
        items.extend(kube_proxy::objects(topology, mode, version, server));
    }
    items.extend(coredns::objects(topology));
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

fn kubelet_access() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "lab:apiserver-kubelet-client"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:kubelet-api-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": KUBELET_CLIENT}],
    })
}

/// A ServiceAccount in kube-system.
fn service_account(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "kube-system"}})
}

/// Keeps the pods of a workload away from these nodes. Without nodes it has no such field, as if
/// nobody had thought of it: a null would count as a field of the manager that applied it.
fn keep_away(mut workload: Value, nodes: &[&str]) -> Value {
    if !nodes.is_empty() {
        let terms = json!([{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": nodes}]}]);
        workload["spec"]["template"]["spec"]["affinity"] = json!({
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}},
        });
    }
    workload
}
