//! IngressSourcePreserve: what a user asks for, and how far it has come.
//!
//! The doc comments of the fields are what `kubectl explain isp.spec` prints, so they address whoever writes the YAML.
//! Each group of fields has its own file. Values that depend on other fields (the label, the pools) have an accessor
//! here; everything else has its default in the schema, where users can see it.

#![allow(
    unreachable_pub,
    reason = "KubeSchema copies each struct, with its visibility, into the body of a function"
)]

use kube::{CustomResource, KubeSchema, ResourceExt};
use serde::{Deserialize, Serialize};

pub use kube_proxy::KubeProxyRef;
pub use label::{ServiceLabel, ServiceLabelSpec};
pub use policy::{ConflictPolicy, DeletionPolicy, Elsewhere, WhenNoIngressEndpoint};
pub use pool::{Mode, NodePool, Pool};
pub use rollout::{BadMaxUnavailable, MaxUnavailable, OnFailure, Rollout};
pub use sidecar::{InterceptionMode, Sidecars, Via};
pub use status::{
    IngressSourcePreserveStatus, KubeProxyStatus, LeftOut, Original, Phase, PoolStatus, ServiceState,
    ServiceStatus, SidecarStatus, StaleOwner, Summary, TrafficPolicy,
};
pub use target::{IngressNodes, ServiceTarget};

mod kube_proxy;
mod label;
mod policy;
mod pool;
mod rollout;
mod sidecar;
mod status;
mod target;

#[cfg(test)]
mod tests;

/// What to preserve, where, and how to get there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "sourcepreserve.io",
    version = "v1alpha1",
    kind = "IngressSourcePreserve",
    shortname = "isp",
    category = "sourcepreserve",
    status = "IngressSourcePreserveStatus",
    derive = "PartialEq",
    doc = "IngressSourcePreserve keeps the client address of connections that enter the cluster through the listed Services: \
           the ingress nodes serve them with externalTrafficPolicy Local, every other node leaves their external addresses alone.",
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Services","type":"string","jsonPath":".status.summary.services"}"#,
    printcolumn = r#"{"name":"Nodes","type":"string","jsonPath":".status.summary.nodes"}"#,
    printcolumn = r#"{"name":"Elsewhere","type":"string","jsonPath":".spec.elsewhere","priority":1}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message","priority":1}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct IngressSourcePreserveSpec {
    /// The nodes that take in the traffic. There the Services are proxied as ever, with `externalTrafficPolicy: Local`, so
    /// each Service needs a ready endpoint on at least one of them.
    pub ingress_nodes: IngressNodes,

    /// The Services whose clients keep their address. Each entry names one Service, or selects Services of one
    /// namespace by their labels. A Service can belong to one object only; the older object keeps it.
    #[schemars(length(min = 1, max = 64))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    #[x_kube(validation = Rule::new("self.all(a, self.exists_one(b, a == b))")
        .message("an entry is listed twice: remove one of the two"))]
    pub services: Vec<ServiceTarget>,

    /// How the other nodes come to leave the Services alone. `Filter`: the node's stock kube-proxy reads the API
    /// through the agent, which narrows what it sees.
    #[serde(default)]
    pub mode: Mode,

    /// What the nodes outside `ingressNodes` may still see of the Services.
    ///
    /// `ClusterOnly`: the external addresses (load balancer IPs and externalIPs) are hidden, so traffic to them leaves
    /// the node and comes in through an ingress node like everyone else's. The ClusterIP keeps working; the NodePort
    /// obeys `externalTrafficPolicy: Local` and drops what enters there from outside.
    ///
    /// `Hidden`: the Service does not exist there, its ClusterIP included. This is what a kube-proxy that was patched
    /// to skip labelled Services does.
    #[serde(default)]
    pub elsewhere: Elsewhere,

    /// Named sets of nodes that get the agent, one DaemonSet each, so that they can be told apart and rolled out
    /// one by one. A node belongs to the first pool whose selector matches it; nodes that match none get no agent,
    /// and the object does not become ready while such a node needs one. Unset: one pool, `default`, of all
    /// nodes that need an agent. Objects may share a pool by giving it the same name, selector and mode.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub node_pools: Vec<NodePool>,

    /// How fast the nodes are changed, and what happens when that goes wrong.
    #[serde(default)]
    pub rollout: Rollout,

    /// Pods with an Istio sidecar that shall pass on the client's IP to the application. Needed where the application
    /// itself looks at the peer address: without it the application sees 127.0.0.6.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub sidecars: Vec<Sidecars>,

    /// The label that marks the Services. It is what agents go by. Set it only to drive kube-proxies that have been patched
    /// to skip a label of their own. It cannot be changed later: all nodes would see the Services again at once, until
    /// they carry the new label.
    #[serde(default)]
    #[x_kube(validation = Rule::new("self == oldSelf").message(
        "cannot be changed, because every node would see the Services again until they carry the new label: delete the \
         object and create it anew with the other label",
    ))]
    pub service_label: ServiceLabelSpec,

    /// The cluster's own kube-proxy. Unset: found by itself, by kubeadm's name and labels or by its command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_proxy: Option<KubeProxyRef>,

    /// What happens when a Service loses its last ready endpoint on the ingress nodes. In either case the Service is shown on
    /// every node at once if it has a ready endpoint on another node. `KeepLocal`: the policy stays `Local`, so only nodes with an
    /// endpoint answer clients from outside, and no connection shows a wrong address. `FallBack`: after 30 seconds the policy goes back
    /// to `Cluster`, so every node answers but the clients' address is lost. Both end when an ingress node has had an endpoint for
    /// 30 seconds.
    #[serde(default)]
    pub when_no_ingress_endpoint: WhenNoIngressEndpoint,

    /// What happens when another manager has declared another value for a field that must change. `Report`: nothing is
    /// written, the condition `Conflict` names the manager, the field and the value. `Force`: the field is taken, and what
    /// was there is restored on deletion.
    #[serde(default)]
    pub conflict_policy: ConflictPolicy,

    /// What happens when the object is deleted. `Restore`: everything it changed is put back, in the safe order, before the
    /// object goes. `Retain`: everything stays as it is.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
}

impl IngressSourcePreserveSpec {
    /// The pools with what they inherit filled in: one pool of all nodes where none is listed, and each pool's mode.
    pub fn pools(&self) -> Vec<Pool<'_>> {
        if self.node_pools.is_empty() {
            return vec![Pool::of_all_nodes(self.mode)];
        }
        self.node_pools.iter().map(|pool| pool.resolve(self.mode)).collect()
    }
}

impl IngressSourcePreserve {
    /// The label that marks this object's Services. Its value depends on the object's name, which no schema default can.
    pub fn service_label(&self) -> ServiceLabel {
        let ServiceLabelSpec { key, value } = &self.spec.service_label;
        ServiceLabel { key: key.clone(), value: value.clone().unwrap_or_else(|| self.name_any()) }
    }

    /// Whether the operator lists the node as one that shows the Services in full.
    pub fn lists_ingress_node(&self, node: &str) -> bool {
        let listed = self.status.as_ref().and_then(|status| status.ingress_nodes.as_ref());
        listed.is_some_and(|listed| listed.iter().any(|name| name == node))
    }
}
