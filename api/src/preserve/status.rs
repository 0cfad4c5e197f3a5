//! What the operator reports about an IngressSourcePreserve.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far the object has come. Written by the operator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngressSourcePreserveStatus {
    /// The generation of the object that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// The conditions in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,

    /// Counts for `kubectl get`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,

    /// The nodes that show the Services in full: those that `spec.ingressNodes` selects, and those that were selected before and are still
    /// the last that serve one of the Services. An agent hides nothing on a node that is listed here. Unset until the checks have
    /// passed for the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub ingress_nodes: Option<Vec<String>>,

    /// `Ready`, `Progressing`, `Degraded`, `Conflict`, and one condition for each step on the way: `Checked`,
    /// `AgentsReady`, `Labelled`, `Acknowledged`, `LocalPolicySet`. With `spec.sidecars` also `SidecarsConsistent`, for which `Ready`
    /// does not wait.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,

    /// The Services that the object names or selects, and what they were before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["namespace".into(), "name".into()]))]
    pub services: Vec<ServiceStatus>,

    /// How far each pool has come.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub node_pools: Vec<PoolStatus>,

    /// Nodes that get no agent because the cluster's kube-proxy does not run there: Windows nodes, virtual kubelets, and whatever else
    /// its DaemonSet does not target. Nothing waits for them. Unset where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,

    /// How often kube-proxy's DaemonSet had to be kept off the nodes with an agent. Unset until that was done once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_proxy: Option<KubeProxyStatus>,

    /// The pods that `spec.sidecars` selects. Unset while it selects nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sidecars: Option<SidecarStatus>,
}

/// Nodes on which the cluster's kube-proxy does not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    /// How many there are.
    pub count: u32,
    /// Their names, at most 20 of them.
    #[schemars(length(max = 20))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub nodes: Vec<String>,
}

/// How often kube-proxy's DaemonSet had to be kept off the nodes with an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeProxyStatus {
    /// The namespace of the DaemonSet.
    pub namespace: String,
    /// The name of the DaemonSet.
    pub daemon_set: String,
    /// How often its node affinity was set. It is counted anew after it has stayed for ten minutes, and when the object changes.
    pub kept_off: u32,
    /// The generation of the DaemonSet on which it was set last.
    pub generation: i64,
}

/// The conditions in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// Nothing has been changed: a check has not passed yet.
    Pending,
    /// On the way to the current generation.
    Progressing,
    /// The client address is preserved for every Service.
    Ready,
    /// Something that worked does not any more, or a step failed.
    Degraded,
    /// Another object or manager claims the same thing.
    Conflict,
    /// Being deleted, on the way back.
    Terminating,
}

/// Counts in the form in which `kubectl get` shows them, such as `2/3`. Programs should use the lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Services that are preserved, of those that were found.
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

    /// What the Service was like before its first change, and will be like again. Unset while it is unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<Original>,

    /// The addresses from outside that lead to the Service: load balancer IPs and host names, and externalIPs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub addresses: Vec<String>,

    /// How many ready endpoints the Service has on ingress nodes. With none, `externalTrafficPolicy: Local` would drop
    /// everything.
    pub ingress_endpoints: u32,

    /// Since when there are none, or some again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress_endpoints_since: Option<Time>,

    /// How far the Service has come.
    pub state: ServiceState,

    /// What it waits for, or what is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// How far a Service has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ServiceState {
    /// Named, but there is no such Service.
    Missing,
    /// Not changed yet.
    Waiting,
    /// It carries the label; its policy is not `Local` yet.
    Labelled,
    /// It carries the label and its policy is `Local`.
    Preserved,
    /// It is shown on every node, its policy is still `Local`: no ingress node has an endpoint, another node has one.
    Open,
    /// It is shown on every node and its policy is back to `Cluster`, until an ingress node has an endpoint again.
    FellBack,
    /// Somebody else claims it or one of its fields.
    Conflict,
    /// On its way back to what it was.
    Restoring,
}

/// The fields of a Service that are changed, as they were.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Original {
    /// `spec.externalTrafficPolicy` as it was.
    pub external_traffic_policy: TrafficPolicy,

    /// `spec.healthCheckNodePort` as it was. Unset: there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check_node_port: Option<i32>,
}

/// A Service's `externalTrafficPolicy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TrafficPolicy {
    /// Any endpoint, at the price of the client's address.
    Cluster,
    /// Endpoints of the same node only.
    Local,
}

/// How far a pool has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolStatus {
    /// The name of the pool.
    pub name: String,
    /// Nodes of the pool that need an agent.
    pub nodes: u32,
    /// Nodes that have gone from the cluster's kube-proxy to the agent.
    pub handed_over: u32,
    /// Nodes whose agent is ready and has acknowledged the current generation.
    pub ready: u32,
    /// Nodes whose agent missed its deadline.
    pub failed: u32,
    /// Nodes that have the agent of the current revision: of the operator's present image and kube-proxy's present template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated: Option<u32>,
}

/// The pods that `spec.sidecars` selects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SidecarStatus {
    /// Pods that an entry selects and that have a sidecar.
    pub matching: u32,
    /// Those whose sidecar works in the wanted mode.
    pub consistent: u32,
    /// Those that were created before, or past the webhook, and need a restart to get there.
    pub stale: u32,
    /// Whose pods are stale: what to restart. At most 20 are listed, those with the most pods first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub restart: Vec<StaleOwner>,
}

/// Something whose pods have to be recreated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StaleOwner {
    /// The namespace that it is in.
    pub namespace: String,
    /// Its kind: `Deployment`, `StatefulSet`, `DaemonSet`, another controller, or `Pod` for a pod that nothing makes anew.
    pub kind: String,
    /// The name that it has there.
    pub name: String,
    /// How many of its pods are stale.
    pub pods: u32,
}
