//! The facts that decisions are made from. Each is the small part of a Kubernetes object that a decision looks at, so
//! that thousands of them fit into memory.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use isp_api::IngressSourcePreserve;
use isp_api::preserve::TrafficPolicy;
use isp_api::sidecar::{Labels, Sidecar};
use isp_api::view::View;
use k8s_openapi::api::apps::v1::DaemonSet as DaemonSetObject;
use serde_json::Value;

use crate::own::OwnKind;
use crate::ownership::Owner;
use crate::record::{AffinityRecord, Failure, Handover, ServiceRecord};

/// The name of a namespaced object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Key {
    /// The name of a namespaced object.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Which state of which object a decision was made from. A write that carries it is refused when either has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The UID.
    pub uid: String,
    /// The resource version.
    pub version: String,
}

/// Everything that is known.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// IngressSourcePreserves by name.
    pub objects: BTreeMap<String, IngressSourcePreserve>,
    /// All Services.
    pub services: BTreeMap<Key, Service>,
    /// Of each Service, by EndpointSlice: how many ready endpoints on which node.
    pub endpoints: BTreeMap<Key, BTreeMap<String, BTreeMap<String, u32>>>,
    /// Nodes by name.
    pub nodes: BTreeMap<String, Node>,
    /// IngressSourceNodes by name.
    pub reports: BTreeMap<String, Report>,
    /// DaemonSets that run kube-proxy, or that the operator made.
    pub daemon_sets: BTreeMap<Key, DaemonSet>,
    /// Pods of those DaemonSets.
    pub pods: BTreeMap<Key, Pod>,
    /// Of each ConfigMap that a kube-proxy is configured by, by file: where its kubeconfig is.
    pub configurations: BTreeMap<Key, BTreeMap<String, String>>,
    /// What decides on new pods.
    pub admission: Admission,
    /// The objects that the operator writes whole, or that have the name of one.
    pub own: BTreeMap<OwnKind, BTreeMap<Key, Written>>,
    /// The labels of namespaces, and pods with a sidecar. Both are known only while an object asks for sidecars.
    pub namespaces: BTreeMap<String, Arc<Labels>>,
    /// See `namespaces`.
    pub sidecars: BTreeMap<Key, SidecarPod>,
}

/// What decides on new pods.
#[derive(Clone, Debug, Default)]
pub struct Admission {
    /// The authorities by which the webhook can be trusted, in base64, where it publishes them. None: it is not there.
    pub bundle: Option<String>,
    /// Whether the API server has MutatingAdmissionPolicies.
    pub serves_policies: bool,
}

/// An object that the operator writes whole, or somebody else's of the same name.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// Which state of it this is.
    pub identity: Identity,
    /// Whether the operator has applied it.
    pub ours: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// What it says.
    pub content: Value,
}

/// A pod with a sidecar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidecarPod {
    /// Its labels.
    pub labels: Labels,
    /// Those of its annotations that choose an interception mode.
    pub annotations: Labels,
    /// What was injected.
    pub sidecar: Sidecar,
    /// The kind and name of what makes it anew.
    pub owner: (String, String),
}

impl Cluster {
    /// The objects of a kind that the operator writes whole.
    pub fn own(&self, kind: OwnKind) -> impl Iterator<Item = (&Key, &Written)> {
        self.own.get(&kind).into_iter().flatten()
    }

    /// How many ready endpoints a Service has, by node.
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
    /// Which state of it this is.
    pub identity: Identity,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// What was written down on it.
    pub record: Option<ServiceRecord>,
    /// Whether anything from outside can reach it: NodePort, LoadBalancer or externalIPs.
    pub exposed: bool,
    /// Whether it is of type LoadBalancer: something outside chooses the nodes by their health checks.
    pub balanced: bool,
    /// `spec.externalTrafficPolicy`.
    pub policy: Option<TrafficPolicy>,
    /// `spec.healthCheckNodePort`.
    pub health_check_node_port: Option<i32>,
    /// Load balancer addresses and externalIPs.
    pub addresses: Vec<String>,
    /// Who owns its policy and labels.
    pub owners: Vec<Owner>,
    /// What `kubectl apply` was last given for its policy and labels.
    pub last_applied: LastApplied,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// What `kubectl apply` was last given, as far as it matters here.
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
    /// Which state of it this is.
    pub identity: Identity,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Whether its kubelet says that it is ready.
    pub ready: bool,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// The pool whose agent it was given by the operator. A label that somebody else put there is nobody's pool.
    pub pool: Option<String>,
    /// The revision of that agent, by the same rule.
    pub revision: Option<String>,
    /// The revision whose images are being pulled, by the same rule.
    pub images: Option<String>,
    /// Whether it is going over to the agent, or back.
    pub handover: Option<Handover>,
    /// Why the agent was taken away again.
    pub failure: Option<Failure>,
}

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// What it does: `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// What the agent of a node reports.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Which state of it this is.
    pub identity: Identity,
    /// The pool that the agent thinks it is in.
    pub pool: String,
    /// The revision that the agent was started by.
    pub revision: String,
    /// Whether kube-proxy reads through the agent at present.
    pub connected: bool,
    /// By UID of the object. Shared by all nodes that report the same.
    pub acknowledged: Arc<Acknowledgements>,
}

/// What a node works with, by the UID of the object.
pub type Acknowledgements = BTreeMap<String, Acknowledged>;

/// What kube-proxy works with on a node, as far as one object is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// The generation of the object.
    pub generation: i64,
    /// What the node sees of its Services.
    pub view: View,
}

/// A DaemonSet.
#[derive(Clone, Debug, Default)]
pub struct DaemonSet {
    /// Which state of it this is.
    pub identity: Identity,
    /// The object, without what the API server keeps about its writers.
    pub object: DaemonSetObject,
    /// Who owns its required node affinity.
    pub owners: Vec<Owner>,
    /// Whether the operator made it: a pool's, or one that pulls images. The label alone, which anybody can set, does not tell.
    pub made: bool,
    /// Who wrote it last, besides the operator.
    pub last_writer: Option<String>,
    /// What was written down on it.
    pub record: Option<AffinityRecord>,
}

/// What a pod of a DaemonSet that the operator made is there for. A pod with such labels need not be the operator's: its DaemonSet tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodRole {
    /// It is an agent.
    Agent {
        /// Of this pool.
        pool: String,
        /// In this revision.
        revision: String,
    },
    /// It pulls the images of a revision.
    Images {
        /// Which one.
        revision: String,
    },
}

/// A pod of one of those DaemonSets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pod {
    /// The DaemonSet that made it.
    pub daemon_set: Key,
    /// Which of ours it is, by its labels.
    pub role: Option<PodRole>,
    /// Where it runs.
    pub node: String,
    /// Whether all its containers are ready and it is not being deleted.
    pub ready: bool,
    /// What keeps a container of it from running.
    pub trouble: Option<String>,
}
