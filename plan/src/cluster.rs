//! The facts that decisions are based on. Each type keeps only the fields of a Kubernetes object
//! that planning uses, so that thousands fit into memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use isp_api::IngressSourcePreserve;
use isp_api::names::SERVICE_PROXY_NAME_LABEL;
use isp_api::node::AgentMode;
use isp_api::preserve::TrafficPolicy;
use isp_api::sidecar::redirect::Shape;
use isp_api::sidecar::{Labels, Sidecar};
use isp_api::view::{View, is_taken_over};
use k8s_openapi::api::apps::v1::DaemonSet as DaemonSetObject;
use serde_json::Value;

use crate::own::OwnKind;
use crate::ownership::Owner;
use crate::record::{AffinityRecord, Failure, Handover, ServiceRecord};

/// Namespace and name of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Key {
    /// Creates a key.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The state of an object that a decision was based on. The API server rejects a write with this
/// precondition if either field has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The UID.
    pub uid: String,
    /// The resource version.
    pub version: String,
}

/// All facts known about the cluster.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// IngressSourcePreserves by name.
    pub objects: BTreeMap<String, IngressSourcePreserve>,
    /// All Services.
    pub services: BTreeMap<Key, Service>,
    /// Ready endpoints of each Service, by EndpointSlice and node.
    pub endpoints: BTreeMap<Key, BTreeMap<String, BTreeMap<String, u32>>>,
    /// Nodes by name.
    pub nodes: BTreeMap<String, Node>,
    /// IngressSourceNodes by name. See [`Cluster::report`].
    pub reports: BTreeMap<String, Report>,
    /// DaemonSets that run kube-proxy or that the operator created.
    pub daemon_sets: BTreeMap<Key, DaemonSet>,
    /// Pods of those DaemonSets.
    pub pods: BTreeMap<Key, Pod>,
    /// The kubeconfig path in each ConfigMap that configures a kube-proxy, by file.
    pub configurations: BTreeMap<Key, BTreeMap<String, String>>,
    /// Availability of the admission mechanisms for pods.
    pub admission: Admission,
    /// Objects that the operator manages entirely, and foreign objects of the same names.
    pub own: BTreeMap<OwnKind, BTreeMap<Key, Written>>,
    /// Namespace labels. Populated only while an object asks for sidecars.
    pub namespaces: BTreeMap<String, Arc<Labels>>,
    /// Pods with a sidecar. Populated only while an object asks for sidecars.
    pub sidecars: BTreeMap<Key, SidecarPod>,
    /// All pods. Populated only while an object asks for a redirect.
    pub redirects: BTreeMap<Key, RedirectPod>,
}

/// Availability of the admission mechanisms for pods.
#[derive(Clone, Debug, Default)]
pub struct Admission {
    /// The webhook's CA bundle in base64. None until the webhook has published it.
    pub bundle: Option<String>,
    /// Whether the API server serves MutatingAdmissionPolicies.
    pub serves_policies: bool,
}

/// An object that the operator manages entirely, or a foreign object of the same name.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// UID and resource version.
    pub identity: Identity,
    /// Whether the operator has applied it.
    pub ours: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Its content, as returned by [`content`](crate::own::content).
    pub content: Value,
}

/// A pod with a sidecar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidecarPod {
    /// Its labels.
    pub labels: Labels,
    /// The annotations that select an interception mode.
    pub annotations: Labels,
    /// The injected sidecar.
    pub sidecar: Sidecar,
    /// Kind and name of the workload that recreates it.
    pub owner: (String, String),
}

/// A pod that may have to have the init container of a redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectPod {
    /// Its labels.
    pub labels: Labels,
    /// The annotations that the decision depends on.
    pub annotations: Labels,
    /// The relevant fields of its spec.
    pub shape: Shape,
    /// Kind and name of the workload that recreates it.
    pub owner: (String, String),
}

impl Cluster {
    /// The known objects of one of the operator's own kinds.
    pub fn own(&self, kind: OwnKind) -> impl Iterator<Item = (&Key, &Written)> {
        self.own.get(&kind).into_iter().flatten()
    }

    /// The report of a node's agent of this mode.
    pub fn report(&self, node: &str, mode: AgentMode) -> Option<&Report> {
        let report = match mode {
            AgentMode::Filter => self.reports.get(node),
            AgentMode::Beside => self.reports.get(&mode.report_name(node)),
        };
        report.filter(|report| report.mode == mode)
    }

    /// The number of ready endpoints of a Service, by node.
    pub fn ready_endpoints(&self, service: &Key) -> BTreeMap<&str, u32> {
        let mut ready = BTreeMap::new();
        for (node, count) in self.endpoints.get(service).into_iter().flat_map(BTreeMap::values).flatten() {
            *ready.entry(node.as_str()).or_default() += count;
        }
        ready
    }
}

/// A Service.
#[derive(Clone, Debug, Default)]
pub struct Service {
    /// UID and resource version.
    pub identity: Identity,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The operator's record annotation.
    pub record: Option<ServiceRecord>,
    /// Whether it is reachable from outside the cluster: NodePort, LoadBalancer or externalIPs.
    pub exposed: bool,
    /// Whether it is of type LoadBalancer: an external load balancer selects nodes by health
    /// checks.
    pub balanced: bool,
    /// `spec.externalTrafficPolicy`.
    pub policy: Option<TrafficPolicy>,
    /// `spec.healthCheckNodePort`.
    pub health_check_node_port: Option<i32>,
    /// Load balancer addresses and externalIPs.
    pub addresses: Vec<String>,
    /// The field managers of its policy and labels.
    pub owners: Vec<Owner>,
    /// Policy and labels as last applied by `kubectl apply`.
    pub last_applied: LastApplied,
    /// Whether it is being deleted.
    pub deleting: bool,
}

impl Service {
    /// Whether kube-proxies skip it because the agents of mode Beside serve it.
    pub fn is_taken_over(&self) -> bool {
        is_taken_over(&self.labels)
    }

    /// Whether kube-proxies skip it, or skipped it not long ago: only the agents of mode Beside are
    /// sure to serve it.
    pub(crate) fn depends_on_beside(&self) -> bool {
        self.is_taken_over() || self.record.as_ref().is_some_and(|record| record.skipped)
    }

    /// Whether the operator owns the label by which kube-proxies skip it.
    pub(crate) fn owns_proxy_name(&self) -> bool {
        self.owners.iter().any(|owner| owner.is_us() && owner.labels.contains(SERVICE_PROXY_NAME_LABEL))
    }
}

/// The relevant fields of the last-applied annotation of `kubectl apply`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastApplied {
    /// `spec.externalTrafficPolicy`.
    pub policy: Option<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
}

/// A node.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// UID and resource version.
    pub identity: Identity,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Whether its Ready condition is true.
    pub ready: bool,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// The pool label, if the operator's field manager owns it. A label set by another manager is
    /// ignored.
    pub pool: Option<String>,
    /// The agent's revision label, by the same rule.
    pub revision: Option<String>,
    /// The label of the revision whose images are being pulled, by the same rule.
    pub images: Option<String>,
    /// The handover or hand-back in progress.
    pub handover: Option<Handover>,
    /// Why the agent was removed again or its images could not be pulled.
    pub failure: Option<Failure>,
}

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Its effect: `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// The report of a node's agent.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// UID and resource version.
    pub identity: Identity,
    /// The agent's mode.
    pub mode: AgentMode,
    /// The pool that the agent reports.
    pub pool: String,
    /// The revision that the agent was started with.
    pub revision: String,
    /// Whether the node's proxy works through the agent.
    pub active: bool,
    /// Mode Beside: how many Services the agent serves.
    pub served: u32,
    /// Acknowledgements. Nodes with equal reports share one allocation.
    pub acknowledged: Arc<Acknowledgements>,
}

/// The acknowledgements of a node, by the UID of the object.
pub type Acknowledgements = BTreeMap<String, Acknowledged>;

/// The state that a node has applied for one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// The generation of the object.
    pub generation: i64,
    /// The node's view of the object's Services.
    pub view: View,
    /// Mode Beside: the object's Services that the agent serves.
    pub services: BTreeSet<Key>,
}

/// A DaemonSet.
#[derive(Clone, Debug, Default)]
pub struct DaemonSet {
    /// UID and resource version.
    pub identity: Identity,
    /// The object, without managedFields and the last-applied annotation.
    pub object: DaemonSetObject,
    /// The field managers of its required node affinity and labels.
    pub owners: Vec<Owner>,
    /// Whether the operator created it, as an agent or image DaemonSet. Decided by name,
    /// labels and managedFields: anyone can set the labels.
    pub made: bool,
    /// The field manager that last wrote it, besides the operator.
    pub last_writer: Option<String>,
    /// The operator's record annotation.
    pub record: Option<AffinityRecord>,
}

/// The purpose of a pod of one of the operator's DaemonSets, by its labels. Foreign pods may carry
/// the same labels: check the DaemonSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodRole {
    /// Runs an agent.
    Agent {
        /// The agent's pool.
        pool: String,
        /// The agent's revision.
        revision: String,
    },
    /// Runs an agent of mode Beside.
    Beside,
    /// Prepulls the images of a revision.
    Images {
        /// The revision.
        revision: String,
    },
}

/// A pod of a kube-proxy or operator DaemonSet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pod {
    /// The DaemonSet that controls it.
    pub daemon_set: Key,
    /// Its role by its labels, if it has one.
    pub role: Option<PodRole>,
    /// The node it runs on.
    pub node: String,
    /// Whether all its containers are ready and it is not being deleted.
    pub ready: bool,
    /// Why a container does not run.
    pub trouble: Option<String>,
}
