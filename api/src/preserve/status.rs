//! The status that the operator reports for an IngressSourcePreserve.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The progress of the object. Written by the operator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngressSourcePreserveStatus {
    /// The generation of the object that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// A one-word summary of the conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,

    /// Counts for `kubectl get`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,

    /// The effective ingress nodes: those that `spec.ingressNodes` selects, and former ones that
    /// are still the last to serve one of the Services. On these nodes the agent hides nothing.
    /// Unset until the checks have passed for the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub ingress_nodes: Option<Vec<String>>,

    /// `Ready`, `Progressing`, `Degraded`, `Conflict`, and one condition for each step: `Checked`,
    /// `AgentsReady`, `Labelled`, `Acknowledged`, `LocalPolicySet`. With `spec.sidecars` also
    /// `SidecarsConsistent`, which `Ready` does not depend on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,

    /// The Services that the object names or selects, with their original values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["namespace".into(), "name".into()]))]
    pub services: Vec<ServiceStatus>,

    /// The progress of each pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub node_pools: Vec<PoolStatus>,

    /// Nodes that get no agent because the cluster's kube-proxy does not run there: Windows nodes,
    /// virtual kubelets, and all other nodes that its DaemonSet does not target. The object does
    /// not wait for them. Unset if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,

    /// How often the operator had to restore the node affinity that keeps kube-proxy's DaemonSet
    /// off nodes with an agent. Unset until it has set the affinity once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_proxy: Option<KubeProxyStatus>,

    /// The pods that `spec.sidecars` selects. Unset while it selects none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sidecars: Option<SidecarStatus>,
}

/// Nodes on which the cluster's kube-proxy does not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    /// The number of these nodes.
    pub count: u32,
    /// Their names, at most 20.
    #[schemars(length(max = 20))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub nodes: Vec<String>,
}

/// How often the operator had to set the node affinity of kube-proxy's DaemonSet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeProxyStatus {
    /// The namespace of the DaemonSet.
    pub namespace: String,
    /// The name of the DaemonSet.
    pub daemon_set: String,
    /// How often its node affinity was set. The count restarts when the affinity has stayed for ten
    /// minutes, and when the object changes.
    pub kept_off: u32,
    /// The generation of the DaemonSet when it was last set.
    pub generation: i64,
}

/// A one-word summary of the conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// Nothing has been changed: a check has not passed yet.
    Pending,
    /// The current generation is being rolled out.
    Progressing,
    /// The source IP is preserved for every Service.
    Ready,
    /// Something that worked has stopped working, or a step failed.
    Degraded,
    /// Another object or manager claims the same thing.
    Conflict,
    /// The object is being deleted, and its changes are being restored.
    Terminating,
}

/// Counts for `kubectl get`, such as `2/3`. Programs should use the lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Preserved Services, of those that were found.
    pub services: String,
    /// Nodes with a ready agent, of those that need one.
    pub nodes: String,
}

/// One Service of the object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceStatus {
    /// The namespace of the Service.
    pub namespace: String,

    /// The name of the Service.
    pub name: String,

    /// The values before the first change, which deletion restores. Unset while the Service is
    /// unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<Original>,

    /// The external addresses of the Service: load balancer IPs and host names, and externalIPs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub addresses: Vec<String>,

    /// The number of ready endpoints on ingress nodes. With none, `externalTrafficPolicy: Local`
    /// would drop all external traffic.
    pub ingress_endpoints: u32,

    /// When the last endpoint disappeared, or the first one came back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress_endpoints_since: Option<Time>,

    /// The progress of the Service.
    pub state: ServiceState,

    /// Whether only the agents of mode Beside are sure to serve the Service: kube-proxies skip it,
    /// or skipped it not long ago. Unset: no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_beside: Option<bool>,

    /// What the Service waits for, or what is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The progress of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ServiceState {
    /// The object names it, but it does not exist.
    Missing,
    /// Not changed yet.
    Waiting,
    /// It has the label; its policy is not `Local` yet.
    Labelled,
    /// It has the label, and its policy is `Local`.
    Preserved,
    /// All nodes see it, and its policy is still `Local`: no ingress node has an endpoint, but
    /// another node does.
    Open,
    /// All nodes see it, and its policy is `Cluster` again until an ingress node has an endpoint.
    FellBack,
    /// Somebody else claims it or one of its fields.
    Conflict,
    /// Its original values are being restored.
    Restoring,
}

/// The original values of the fields that are changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Original {
    /// The original `spec.externalTrafficPolicy`.
    pub external_traffic_policy: TrafficPolicy,

    /// The original `spec.healthCheckNodePort`. Unset: the Service had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check_node_port: Option<i32>,
}

/// A Service's `externalTrafficPolicy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TrafficPolicy {
    /// Any endpoint; the source IP is lost.
    Cluster,
    /// Only endpoints of the same node.
    Local,
}

/// The progress of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolStatus {
    /// The name of the pool.
    pub name: String,
    /// Nodes of the pool that need an agent.
    pub nodes: u32,
    /// Nodes that run the agent instead of the cluster's kube-proxy.
    pub handed_over: u32,
    /// Nodes whose agent is ready and has acknowledged the current generation.
    pub ready: u32,
    /// Nodes whose agent missed its deadline.
    pub failed: u32,
    /// Nodes with the current revision of the agent: the operator's current image and kube-proxy's
    /// current template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated: Option<u32>,
}

/// The pods that `spec.sidecars` selects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SidecarStatus {
    /// Pods that an entry selects and that have a sidecar.
    pub matching: u32,
    /// Pods whose sidecar runs in the requested mode.
    pub consistent: u32,
    /// Pods that were created earlier, or without the webhook, and must be recreated.
    pub stale: u32,
    /// The owners of stale pods, to be restarted. At most 20 are listed, those with the most pods
    /// first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub restart: Vec<StaleOwner>,
}

/// An owner of stale pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StaleOwner {
    /// The namespace of the owner.
    pub namespace: String,
    /// Its kind: `Deployment`, `StatefulSet`, `DaemonSet`, another controller, or `Pod` for a pod
    /// without a controller.
    pub kind: String,
    /// The name of the owner.
    pub name: String,
    /// The number of its stale pods.
    pub pods: u32,
}
