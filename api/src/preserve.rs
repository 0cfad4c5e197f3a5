//! IngressSourcePreserve: the spec that users write, and the status that the operator reports.
//!
//! `kubectl explain isp.spec` prints the doc comments of the fields, so they address the author of
//! the YAML. Each group of fields has its own file. Values that depend on other fields (the label,
//! the pools) have an accessor here. Everything else has its default in the schema, where users can
//! see it.

#![allow(
    unreachable_pub,
    reason = "KubeSchema copies each struct, with its visibility, into the body of a function"
)]

use kube::{CustomResource, KubeSchema, ResourceExt};
use serde::{Deserialize, Serialize};

use crate::rules;

pub use kube_proxy::KubeProxyRef;
pub use label::{ServiceLabel, ServiceLabelSpec};
pub use policy::{ConflictPolicy, DeletionPolicy, Elsewhere, WhenNoIngressEndpoint};
pub use pool::{Mode, NodePool, Pool};
pub use redirect::{Cgroup, Exempt, Inbound, InitOrder, Method, Outbound, Redirect};
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
mod redirect;
mod rollout;
mod sidecar;
mod status;
mod target;

#[cfg(test)]
mod tests;

/// The Services to preserve, the ingress nodes, and how non-ingress nodes are changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "sourcepreserve.io",
    version = "v1alpha1",
    kind = "IngressSourcePreserve",
    shortname = "isp",
    category = "sourcepreserve",
    status = "IngressSourcePreserveStatus",
    derive = "PartialEq",
    doc = "IngressSourcePreserve preserves the source IP of connections that enter the cluster through the listed Services: \
           ingress nodes serve them with externalTrafficPolicy Local, and all other nodes stop intercepting traffic to their external IPs.",
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Services","type":"string","jsonPath":".status.summary.services"}"#,
    printcolumn = r#"{"name":"Nodes","type":"string","jsonPath":".status.summary.nodes"}"#,
    printcolumn = r#"{"name":"Elsewhere","type":"string","jsonPath":".spec.elsewhere","priority":1}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message","priority":1}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[x_kube(validation = rules::rule(
    "self.mode != 'Beside' || !has(self.nodePools) || self.nodePools.size() == 0",
    "'mode Beside has no pools, because its agents run on every node: remove pool \"' + self.nodePools[0].name + '\" and all others, or use \
     mode Filter'",
).field_path(".nodePools"))]
#[serde(rename_all = "camelCase")]
pub struct IngressSourcePreserveSpec {
    /// The nodes that receive the external traffic. They serve the Services with
    /// `externalTrafficPolicy: Local`, so each Service needs a ready endpoint on at least one of
    /// them.
    pub ingress_nodes: IngressNodes,

    /// The Services whose source IPs are preserved. Each entry names one Service, or selects
    /// Services of one namespace by their labels. A Service can belong to one object only; the
    /// older object keeps it.
    #[schemars(length(min = 1, max = 64))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    #[x_kube(validation = Rule::new("self.all(a, self.exists_one(b, a == b))")
        .message("an entry is listed twice: remove one of the two"))]
    pub services: Vec<ServiceTarget>,

    /// How non-ingress nodes stop intercepting traffic to the external IPs.
    ///
    /// `Filter`: the node's stock kube-proxy reads the API through the agent, which removes the
    /// external IPs. kube-proxy must run as a DaemonSet.
    ///
    /// `Beside`: the Services get the label `service.kubernetes.io/service-proxy-name`, so that
    /// every kube-proxy skips them, and agents on all nodes serve them. kube-proxy itself stays as
    /// it is, and need not exist.
    ///
    /// The mode can be changed at any time: both modes serve the Services until the change is
    /// complete.
    #[serde(default)]
    pub mode: Mode,

    /// What kube-proxy on non-ingress nodes (all nodes outside `ingressNodes`) sees of the
    /// Services.
    ///
    /// `ClusterOnly`: everything except the external IPs (load balancer IPs and externalIPs).
    /// Traffic from such a node to an external IP leaves the node and enters through an ingress
    /// node, like all other external traffic. The ClusterIP keeps working. The NodePort obeys
    /// `externalTrafficPolicy: Local` and drops external traffic.
    ///
    /// `Hidden`: nothing, not even the ClusterIP. A kube-proxy that is patched to skip labelled
    /// Services behaves like this.
    #[serde(default)]
    pub elsewhere: Elsewhere,

    /// Named sets of nodes that run the agent. Each pool has its own DaemonSet and is rolled out
    /// separately. A node belongs to the first pool whose selector matches it. A node that matches
    /// no pool gets no agent, and the object does not become ready while such a node needs one.
    /// Unset: one pool, `default`, with all nodes that need an agent. Objects share a pool if they
    /// use the same name and selector. Mode `Beside` has no pools: its agents run on every node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub node_pools: Vec<NodePool>,

    /// How fast the nodes are changed, and what happens if a wave fails.
    #[serde(default)]
    pub rollout: Rollout,

    /// Pods whose proxy must pass the client's IP on to the application: Istio's sidecar, or, with
    /// `redirect`, a container of their own. Needed if the application itself reads the peer
    /// address; without it, an application behind Istio's sidecar sees 127.0.0.6.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub sidecars: Vec<Sidecars>,

    /// The label that marks the Services for the agents. Set it only to control kube-proxies that
    /// are patched to skip a label of their own. It cannot be changed later: all nodes would see
    /// the Services again until they have the new label.
    #[serde(default)]
    #[x_kube(validation = Rule::new("self == oldSelf").message(
        "cannot be changed, because every node would see the Services again until they have the new label: delete the \
         object and create it again with the other label",
    ))]
    pub service_label: ServiceLabelSpec,

    /// The cluster's own kube-proxy, for mode `Filter`. Unset: the operator finds it by kubeadm's
    /// name and labels, or by its command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_proxy: Option<KubeProxyRef>,

    /// What happens when a Service loses its last ready endpoint on the ingress nodes. In both
    /// cases all nodes see the Service again at once, if another node has a ready endpoint.
    /// `KeepLocal`: the policy stays `Local`, so only nodes with an endpoint answer external
    /// clients, and the source IP stays correct. `FallBack`: after 30 seconds the policy returns to
    /// `Cluster`, so every node answers, but the source IP is lost. Both end when an ingress node
    /// has had an endpoint for 30 seconds.
    #[serde(default)]
    pub when_no_ingress_endpoint: WhenNoIngressEndpoint,

    /// What happens when another manager has declared another value for a field that must change.
    /// `Report`: nothing is written, and the condition `Conflict` names the manager, the field and
    /// the value. `Force`: the operator takes the field and restores its value on deletion.
    #[serde(default)]
    pub conflict_policy: ConflictPolicy,

    /// What happens when the object is deleted. `Restore`: the operator restores everything that it
    /// changed, in a safe order, before the object is removed. `Retain`: nothing is restored.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
}

impl IngressSourcePreserveSpec {
    /// The pools, or one pool of all nodes if none is listed. Mode Beside has no pools.
    pub fn pools(&self) -> Vec<Pool<'_>> {
        if self.mode == Mode::Beside {
            return Vec::new();
        }
        if self.node_pools.is_empty() {
            return vec![Pool::of_all_nodes()];
        }
        self.node_pools.iter().map(NodePool::resolve).collect()
    }
}

impl IngressSourcePreserve {
    /// The label that marks this object's Services. Its value depends on the object's name, so the
    /// schema cannot have its default.
    pub fn service_label(&self) -> ServiceLabel {
        let ServiceLabelSpec { key, value } = &self.spec.service_label;
        ServiceLabel { key: key.clone(), value: value.clone().unwrap_or_else(|| self.name_any()) }
    }

    /// Whether the agents of mode Beside serve its Services: its mode is Beside, or it has left the
    /// mode and one of its Services still depends on them.
    pub fn is_served_beside(&self) -> bool {
        let listed = self.status.iter().flat_map(|status| &status.services);
        self.spec.mode == Mode::Beside || listed.into_iter().any(|known| known.served_beside == Some(true))
    }

    /// Whether the status lists the node as an ingress node.
    pub fn lists_ingress_node(&self, node: &str) -> bool {
        let listed = self.status.as_ref().and_then(|status| status.ingress_nodes.as_ref());
        listed.is_some_and(|listed| listed.iter().any(|name| name == node))
    }
}
