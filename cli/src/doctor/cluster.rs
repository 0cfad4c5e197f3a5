//! The facts that are examined, wherever they come from: each is the small part of an object that a check looks at.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use isp_api::sidecar::{Labels, Sidecar};
use isp_api::{IngressSourceNode, IngressSourcePreserve};
use isp_plan::Key;
use isp_plan::cluster::{DaemonSet, Pod as DaemonPod, Service as ServiceFacts};
use k8s_openapi::api::core::v1::{LoadBalancerIngress, ServiceSpec};

use super::kinds::Kind;
use super::mesh::{AuthorizationPolicy, EnvoyFilter};
use super::ranges::Range;

/// Everything that is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cluster {
    pub(crate) objects: Vec<IngressSourcePreserve>,
    /// What agents report, by node.
    pub(crate) reports: BTreeMap<String, IngressSourceNode>,
    pub(crate) services: BTreeMap<Key, Service>,
    /// Of each Service: how many ready endpoints on which node.
    pub(crate) endpoints: BTreeMap<Key, BTreeMap<String, u32>>,
    pub(crate) nodes: BTreeMap<String, Node>,
    pub(crate) namespaces: BTreeMap<String, Labels>,
    /// Pods that have to do with any of it: proxies of Istio's, kube-proxies, agents.
    pub(crate) pods: BTreeMap<Key, Pod>,
    /// DaemonSets that run kube-proxy or are a pool's.
    pub(crate) daemon_sets: BTreeMap<Key, DaemonSet>,
    pub(crate) deployments: BTreeMap<Key, Deployment>,
    /// Files of `ConfigMap`s that configure a kube-proxy or a mesh.
    pub(crate) config_maps: BTreeMap<Key, BTreeMap<String, String>>,
    /// What is called about pods and other objects that are created, in the order of the calls.
    pub(crate) mutating: BTreeMap<String, Vec<Webhook>>,
    pub(crate) validating: BTreeMap<String, Vec<Webhook>>,
    pub(crate) policies: BTreeMap<Key, AuthorizationPolicy>,
    pub(crate) filters: BTreeMap<Key, EnvoyFilter>,
    /// Which kinds were looked at. Of any other, that there is none says nothing.
    pub(crate) looked_at: BTreeSet<Kind>,
    /// Which could not be looked at, and why.
    pub(crate) not_looked_at: BTreeMap<Kind, String>,
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

    /// The pods that a Service selects.
    pub(crate) fn pods_of(&self, service: &Key) -> impl Iterator<Item = (&Key, &Pod)> {
        let selector = self.services.get(service).and_then(|service| service.spec.selector.as_ref());
        let selector = selector.filter(|selector| !selector.is_empty());
        self.pods.iter().filter(move |(key, pod)| {
            key.namespace == service.namespace && selector.is_some_and(|selector| pod.has(selector))
        })
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
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) labels: Labels,
    pub(crate) ready: bool,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) pod_ranges: Vec<Range>,
    /// Why its agent was taken away again.
    pub(crate) failure: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Pod {
    pub(crate) labels: Labels,
    pub(crate) annotations: Labels,
    pub(crate) addresses: Vec<IpAddr>,
    /// The sidecar that was injected.
    pub(crate) sidecar: Option<Sidecar>,
    /// Whether it is a gateway of Istio's.
    pub(crate) gateway: bool,
    /// The kind and name of what makes it anew.
    pub(crate) owner: (String, String),
    /// Whether it runs a kube-proxy, behind an agent or not, and as which DaemonSet's.
    pub(crate) proxy: Option<DaemonPod>,
    /// Whether an agent is in it.
    pub(crate) agent: bool,
}

impl Pod {
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
