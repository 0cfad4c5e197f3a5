//! The facts that are examined, wherever they come from: each is the small part of an object that a check looks at.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use isp_api::sidecar::{Labels, Sidecar};
use isp_api::{IngressSourceNode, IngressSourcePreserve};
use isp_plan::Key;
use isp_plan::cluster::{DaemonSet, Pod as DaemonPod, Service as ServiceFacts};
use k8s_openapi::api::core::v1::{LoadBalancerIngress, ServiceSpec};

use super::judgement::Arrival;
use super::kinds::Kind;
use super::lists::{Controller, ControllerSettings, Ingress, NetworkPolicy};
use super::mesh::{EnvoyFilter, Mesh, ProxyConfig};
use super::policy::AuthorizationPolicy;
use super::ranges::Range;
use super::routes::Routes;

/// Everything that is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cluster {
    pub(crate) objects: Vec<IngressSourcePreserve>,
    /// What agents report, by node.
    pub(crate) reports: BTreeMap<String, IngressSourceNode>,
    pub(crate) services: BTreeMap<Key, Service>,
    /// Of each Service: how many ready endpoints on which node.
    pub(crate) endpoints: BTreeMap<Key, BTreeMap<String, u32>>,
    /// Of each Service: the addresses of its endpoints.
    pub(crate) backends: BTreeMap<Key, BTreeSet<IpAddr>>,
    pub(crate) nodes: BTreeMap<String, Node>,
    pub(crate) namespaces: BTreeMap<String, Labels>,
    /// All that are not over.
    pub(crate) pods: BTreeMap<Key, Pod>,
    /// DaemonSets that run kube-proxy or are a pool's.
    pub(crate) daemon_sets: BTreeMap<Key, DaemonSet>,
    pub(crate) deployments: BTreeMap<Key, Deployment>,
    /// Files of `ConfigMap`s that configure a kube-proxy.
    pub(crate) config_maps: BTreeMap<Key, BTreeMap<String, String>>,
    /// The settings of meshes, by the `ConfigMap` that has them.
    pub(crate) meshes: BTreeMap<Key, Mesh>,
    /// What is called about pods and other objects that are created, in the order of the calls.
    pub(crate) mutating: BTreeMap<String, Vec<Webhook>>,
    pub(crate) validating: BTreeMap<String, Vec<Webhook>>,
    pub(crate) network_policies: BTreeMap<Key, NetworkPolicy>,
    pub(crate) ingresses: BTreeMap<Key, Ingress>,
    /// Settings of controllers of Ingresses, by the `ConfigMap` that has them.
    pub(crate) controllers: BTreeMap<Key, ControllerSettings>,
    pub(crate) policies: BTreeMap<Key, AuthorizationPolicy>,
    pub(crate) filters: BTreeMap<Key, EnvoyFilter>,
    /// Who hands requests on to whom.
    pub(crate) routes: Routes,
    /// Which kinds were looked at. Of any other, that there is none says nothing.
    pub(crate) looked_at: BTreeSet<Kind>,
    /// Which could not be looked at, and why.
    pub(crate) not_looked_at: BTreeMap<Kind, Missing>,
    /// Objects that cannot be read, and why.
    pub(crate) unreadable: BTreeMap<(Kind, Key), String>,
}

/// Why a kind was not looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    Forbidden,
    /// The API server has failed.
    Failed(String),
    /// Every cluster has some, and the dump has none.
    NotInDump,
    /// The dump has none, and the cluster may have none.
    PerhapsNotInDump,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forbidden => f.write_str("the right to list them is missing"),
            Self::Failed(said) => write!(f, "the API server answered: {said}"),
            Self::NotInDump => f.write_str("the dump has none"),
            Self::PerhapsNotInDump => f.write_str("the dump has none, and there are proxies of Istio's"),
        }
    }
}

impl Cluster {
    /// Whether that something of a kind is not known means that it is not there.
    pub(crate) fn knows(&self, kind: Kind) -> bool {
        self.looked_at.contains(&kind)
    }

    /// How many ready endpoints a Service has on which nodes.
    pub(crate) fn ready_endpoints(&self, service: &Key) -> BTreeMap<&str, u32> {
        let ready = self.endpoints.get(service).into_iter().flatten();
        ready.map(|(node, count)| (node.as_str(), *count)).collect()
    }

    /// The pods of a namespace.
    pub(crate) fn pods_in(&self, namespace: &str) -> impl Iterator<Item = (&Key, &Pod)> + use<'_> {
        let first = Key::new(namespace, "");
        let namespace = namespace.to_owned();
        self.pods.range(first..).take_while(move |(key, _)| key.namespace == namespace)
    }

    /// Whether what a namespace says is said for the whole mesh.
    pub(crate) fn is_root(&self, namespace: &str) -> bool {
        let none = Mesh::default();
        let mut roots = self.meshes.values().chain(self.meshes.is_empty().then_some(&none));
        roots.any(|mesh| mesh.root_namespace() == namespace)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Service {
    /// What the operator looks at.
    pub(crate) facts: ServiceFacts,
    pub(crate) spec: ServiceSpec,
    /// What the load balancer has answered.
    pub(crate) ingress: Vec<LoadBalancerIngress>,
}

impl Service {
    pub(crate) fn is_local(&self) -> bool {
        self.spec.external_traffic_policy.as_deref() == Some("Local")
    }

    /// Whose source IP connections from outside have at its pods.
    pub(crate) fn arrival(&self) -> Arrival {
        if !self.is_local() {
            Arrival::Node
        } else if self.facts.balanced && self.ingress.iter().any(is_proxy) {
            Arrival::Balancer
        } else {
            Arrival::Client
        }
    }

    /// `Cluster` unless it says otherwise, as kube-proxy has it.
    pub(crate) fn policy(&self) -> &str {
        self.spec.external_traffic_policy.as_deref().unwrap_or("Cluster")
    }
}

/// Whether the balancer opens connections of its own for this address.
pub(crate) fn is_proxy(ingress: &LoadBalancerIngress) -> bool {
    ingress.ip_mode.as_deref() == Some("Proxy")
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) labels: Labels,
    pub(crate) ready: bool,
    pub(crate) addresses: Vec<IpAddr>,
    /// Those that it has inside the cluster, where any are told apart; kube-proxy masquerades with one of them.
    pub(crate) internal: Vec<IpAddr>,
    pub(crate) pod_ranges: Vec<Range>,
    /// Why its agent was taken away again.
    pub(crate) failure: Option<String>,
}

#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Pod {
    pub(crate) labels: Labels,
    pub(crate) annotations: Labels,
    pub(crate) addresses: Vec<IpAddr>,
    /// What its proxy is told by the pod itself.
    pub(crate) settings: ProxyConfig,
    /// The sidecar that was injected.
    pub(crate) sidecar: Option<Sidecar>,
    /// Whether it is a gateway of Istio's.
    pub(crate) gateway: bool,
    /// Whether its node's ztunnel stands before it.
    pub(crate) ambient: bool,
    /// Whether it is a controller of Ingresses.
    pub(crate) controller: Option<Controller>,
    /// Whether it uses the network of its node.
    pub(crate) host_network: bool,
    /// The kind and name of what makes it anew.
    pub(crate) owner: (String, String),
    /// Whether it runs a kube-proxy, behind an agent or not, and as which DaemonSet's.
    pub(crate) proxy: Option<DaemonPod>,
    /// Whether an agent is in it.
    pub(crate) agent: bool,
}

impl Pod {
    /// Whether it is a proxy of Istio's, a kube-proxy or an agent, or has a sidecar.
    pub(crate) fn has_proxy(&self) -> bool {
        self.gateway || self.sidecar.is_some() || self.proxy.is_some() || self.agent
    }

    /// Whether Istio enforces policies for it.
    pub(crate) fn is_in_mesh(&self) -> bool {
        self.gateway || self.sidecar.is_some() || self.ambient
    }

    /// Whether it has all these labels.
    pub(crate) fn has(&self, wanted: &Labels) -> bool {
        wanted.iter().all(|(key, value)| self.labels.get(key) == Some(value))
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Deployment {
    pub(crate) labels: Labels,
    pub(crate) wanted: i32,
    pub(crate) available: i32,
}

/// One entry of a configuration of webhooks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Webhook {
    pub(crate) name: String,
    /// The Service that is called.
    pub(crate) service: Option<Key>,
    /// By what it is trusted, as PEM.
    pub(crate) bundle: Vec<u8>,
}
