//! The facts that checks use, from a cluster or a dump: small parts of objects.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use isp_api::age::by_age;
use isp_api::claims::{ServiceIdentity, claims};
use isp_api::node::{AgentMode, IngressSourceNodeStatus};
use isp_api::sidecar::{Labels, Sidecar};
use isp_api::{IngressSourceNode, IngressSourcePreserve};
use isp_plan::Key;
use isp_plan::cluster::{DaemonSet, Pod as DaemonPod, Service as ServiceFacts};
use k8s_openapi::api::core::v1::{LoadBalancerIngress, ServiceSpec};
use kube::ResourceExt;

use super::judgement::Arrival;
use super::kinds::Kind;
use super::lists::{Controller, ControllerSettings, Ingress, NetworkPolicy};
use super::mesh::{EnvoyFilter, Mesh, ProxyConfig};
use super::network::{CiliumSettings, Network, NetworkAgent};
use super::policy::AuthorizationPolicy;
use super::ranges::Range;
use super::routes::Routes;

/// All facts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cluster {
    pub(crate) objects: Vec<IngressSourcePreserve>,
    /// The reports of agents by name. See [`Cluster::report`].
    pub(crate) reports: BTreeMap<String, IngressSourceNode>,
    pub(crate) services: BTreeMap<Key, Service>,
    /// Of each Service: how many ready endpoints on which node.
    pub(crate) endpoints: BTreeMap<Key, BTreeMap<String, u32>>,
    /// Of each Service: the addresses of its endpoints.
    pub(crate) backends: BTreeMap<Key, BTreeSet<IpAddr>>,
    pub(crate) nodes: BTreeMap<String, Node>,
    pub(crate) namespaces: BTreeMap<String, Labels>,
    /// All that have not terminated.
    pub(crate) pods: BTreeMap<Key, Pod>,
    /// DaemonSets that run kube-proxy or are a pool's.
    pub(crate) daemon_sets: BTreeMap<Key, DaemonSet>,
    /// DaemonSets of programs that provide the pod network or serve Services.
    pub(crate) networks: BTreeMap<Key, NetworkAgent>,
    pub(crate) deployments: BTreeMap<Key, Deployment>,
    /// Files of `ConfigMap`s that configure a kube-proxy.
    pub(crate) config_maps: BTreeMap<Key, BTreeMap<String, String>>,
    /// The settings of Cilium, if they could be read.
    pub(crate) cilium: Option<CiliumSettings>,
    /// The settings of meshes, by `ConfigMap`.
    pub(crate) meshes: BTreeMap<Key, Mesh>,
    /// Mutating webhooks by configuration; API servers call them in this order.
    pub(crate) mutating: BTreeMap<String, Vec<Webhook>>,
    pub(crate) validating: BTreeMap<String, Vec<Webhook>>,
    pub(crate) network_policies: BTreeMap<Key, NetworkPolicy>,
    pub(crate) ingresses: BTreeMap<Key, Ingress>,
    /// Settings of ingress controllers, by `ConfigMap`.
    pub(crate) controllers: BTreeMap<Key, ControllerSettings>,
    pub(crate) policies: BTreeMap<Key, AuthorizationPolicy>,
    pub(crate) filters: BTreeMap<Key, EnvoyFilter>,
    /// The routes of gateways.
    pub(crate) routes: Routes,
    /// The facts that paths of packets depend on.
    pub(crate) paths: isp_paths::Cluster,
    /// The kinds that were read completely. The absence of any other kind proves nothing.
    pub(crate) looked_at: BTreeSet<Kind>,
    /// The kinds that could not be read, and why.
    pub(crate) not_looked_at: BTreeMap<Kind, Missing>,
    /// Objects that cannot be parsed, and why.
    pub(crate) unreadable: BTreeMap<(Kind, Key), String>,
    /// The version of the API server, such as `v1.37.0`, if it is known.
    pub(crate) version: Option<String>,
    /// The files of a dump, and the place in `files` of the file that has an object.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) origins: BTreeMap<(Kind, Key), usize>,
}

/// Why a kind was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    Forbidden,
    /// The API server failed.
    Failed(String),
    /// The dump has none, although every cluster has some.
    NotInDump,
    /// The dump has none, and perhaps the cluster has none.
    PerhapsNotInDump,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forbidden => f.write_str("the right to list them is missing"),
            Self::Failed(said) => write!(f, "the API server answered: {said}"),
            Self::NotInDump => f.write_str("the dump has none"),
            Self::PerhapsNotInDump => f.write_str("the dump has none, although there are Istio proxies"),
        }
    }
}

impl Cluster {
    /// Notes the file of a dump that has an object. Files come one after the other.
    pub(crate) fn note_origin(&mut self, kind: Kind, key: Key, file: &str) {
        let file = PathBuf::from(file);
        if self.files.last() != Some(&file) {
            self.files.push(file);
        }
        self.origins.insert((kind, key), self.files.len() - 1);
    }

    /// Whether an object of this kind that is not known does not exist.
    pub(crate) fn knows(&self, kind: Kind) -> bool {
        self.looked_at.contains(&kind)
    }

    /// The Services as ownership sees them, in their order here.
    pub(crate) fn service_identities(&self) -> Vec<ServiceIdentity<'_>> {
        self.services
            .iter()
            .map(|(key, service)| ServiceIdentity {
                namespace: &key.namespace,
                name: &key.name,
                labels: &service.facts.labels,
            })
            .collect()
    }

    /// The object that each Service belongs to, for objects that are not being deleted.
    pub(crate) fn owners(&self) -> BTreeMap<&Key, String> {
        let written = by_age(&self.objects);
        let claimed = claims(&written, &self.service_identities()).claimed;
        let keys: Vec<&Key> = self.services.keys().collect();
        let standing = written
            .into_iter()
            .zip(claimed)
            .filter(|(object, _)| object.metadata.deletion_timestamp.is_none());
        let owned = standing.flat_map(|(object, claimed)| {
            let name = object.name_any();
            claimed.services.into_iter().map(move |place| (place, name.clone()))
        });
        owned.filter_map(|(place, name)| Some((*keys.get(place)?, name))).collect()
    }

    /// The exposed Services, or the one that is asked about if it is exposed.
    pub(crate) fn exposed<'a>(&'a self, asked: Option<&Key>) -> impl Iterator<Item = (&'a Key, &'a Service)> {
        let wanted = move |key: &Key| asked.is_none_or(|asked| asked == key);
        self.services.iter().filter(move |(key, service)| service.facts.exposed && wanted(key))
    }

    /// The report of a node's agent of this mode.
    pub(crate) fn report(&self, node: &str, mode: AgentMode) -> Option<&IngressSourceNodeStatus> {
        let status = self.reports.get(&mode.report_name(node))?.status.as_ref();
        status.filter(|status| status.mode == mode)
    }

    /// The agents of this mode on a node, of all that have a pod.
    pub(crate) fn agents_on(&self, node: &str, mode: AgentMode) -> impl Iterator<Item = &DaemonPod> {
        self.agents(mode).filter(move |agent| agent.node == node)
    }

    /// The agents of this mode.
    pub(crate) fn agents(&self, mode: AgentMode) -> impl Iterator<Item = &DaemonPod> {
        let pods = self.pods.values().filter(move |pod| pod.agent == Some(mode));
        pods.filter_map(|pod| pod.proxy.as_ref())
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

    /// Whether policies of a namespace apply to the whole mesh.
    pub(crate) fn is_root(&self, namespace: &str) -> bool {
        let none = Mesh::default();
        let mut roots = self.meshes.values().chain(self.meshes.is_empty().then_some(&none));
        roots.any(|mesh| mesh.root_namespace() == namespace)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Service {
    /// The facts that the operator uses.
    pub(crate) facts: ServiceFacts,
    pub(crate) spec: ServiceSpec,
    /// The addresses that the load balancer assigned.
    pub(crate) ingress: Vec<LoadBalancerIngress>,
    /// The annotation that tells that the load balancer opens its own connections.
    pub(crate) proxied_by: Option<&'static str>,
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

    /// `Cluster` by default, as for kube-proxy.
    pub(crate) fn policy(&self) -> &str {
        self.spec.external_traffic_policy.as_deref().unwrap_or("Cluster")
    }
}

/// Whether the balancer opens its own connections for this address.
pub(crate) fn is_proxy(ingress: &LoadBalancerIngress) -> bool {
    ingress.ip_mode.as_deref() == Some("Proxy")
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) labels: Labels,
    pub(crate) ready: bool,
    pub(crate) addresses: Vec<IpAddr>,
    /// Its internal addresses, if marked as such; kube-proxy uses one of them for SNAT.
    pub(crate) internal: Vec<IpAddr>,
    pub(crate) pod_ranges: Vec<Range>,
    /// Why the operator removed its agent.
    pub(crate) failure: Option<String>,
    /// Its system, as the kubelet reports it.
    pub(crate) system: System,
    /// Whether an agent of mode Beside can run there.
    pub(crate) beside: bool,
    /// The pod networks that have left their mark on it.
    pub(crate) networks: BTreeSet<Network>,
}

/// The system of a node. A field is empty if it is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct System {
    /// `linux`, `windows`.
    pub(crate) os: String,
    /// `amd64`, `arm64`.
    pub(crate) architecture: String,
    /// `6.1.0-28-amd64`.
    pub(crate) kernel: String,
    /// `v1.33.1+k3s1`.
    pub(crate) kubelet: String,
}

#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Pod {
    pub(crate) labels: Labels,
    pub(crate) annotations: Labels,
    pub(crate) addresses: Vec<IpAddr>,
    /// The proxy settings of the pod itself.
    pub(crate) settings: ProxyConfig,
    /// The sidecar that was injected.
    pub(crate) sidecar: Option<Sidecar>,
    /// Whether it is an Istio gateway.
    pub(crate) gateway: bool,
    /// Whether ztunnel of its node intercepts its traffic.
    pub(crate) ambient: bool,
    /// Its ingress controller, if it is one.
    pub(crate) controller: Option<Controller>,
    /// Whether it uses the network of its node.
    pub(crate) host_network: bool,
    /// The kind and name of the workload that owns it.
    pub(crate) owner: (String, String),
    /// Its kube-proxy, behind an agent or not, or its agent, and the DaemonSet of it.
    pub(crate) proxy: Option<DaemonPod>,
    /// The mode of the agent in it.
    pub(crate) agent: Option<AgentMode>,
    /// Whether it is a static pod that runs kube-proxy.
    pub(crate) static_kube_proxy: bool,
}

impl Pod {
    /// Whether it is an Istio proxy, a kube-proxy or an agent, or has a sidecar.
    pub(crate) fn has_proxy(&self) -> bool {
        self.gateway || self.sidecar.is_some() || self.proxy.is_some() || self.agent.is_some()
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
    /// Its CA bundle, as PEM.
    pub(crate) bundle: Vec<u8>,
}
