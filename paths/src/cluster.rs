//! The facts about a cluster, folded from its objects one by one. An object that comes again
//! replaces its former version.

mod node;
mod pod;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use isp_api::node::{AgentMode, IngressSourceNodeStatus};
use isp_api::{IngressSourceNode, IngressSourcePreserve};
use isp_dataplane::model::Service as ServiceModel;
use isp_dataplane::nft::Protocol;
use isp_intake::services::{self as intake, KnownService, KnownSlice};
use isp_plan::{Key, observe};
use k8s_openapi::api::core::v1::{Node as NodeObject, Pod as PodObject, Service as ServiceObject};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;

pub use self::node::Node;
pub(crate) use self::pod::redirects;
pub use self::pod::{Interception, Pod};
use crate::kube_proxy::KubeProxy;

/// The facts.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    services: BTreeMap<Key, Service>,
    /// By Service, then by the name of the slice.
    slices: BTreeMap<Key, BTreeMap<String, KnownSlice>>,
    /// The Service of each slice, by namespace and name of the slice.
    owners: BTreeMap<Key, Key>,
    nodes: BTreeMap<String, Node>,
    pods: BTreeMap<Key, Pod>,
    objects: Vec<IngressSourcePreserve>,
    reports: BTreeMap<String, IngressSourceNodeStatus>,
    /// None: not known. Then the defaults are assumed.
    kube_proxy: Option<KubeProxy>,
    /// The Services that have an address, of whatever kind.
    by_address: BTreeMap<IpAddr, BTreeSet<Key>>,
    by_node_port: BTreeMap<(Protocol, u16), BTreeSet<Key>>,
    pod_addresses: BTreeMap<IpAddr, Key>,
}

/// A Service without its endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// What rules depend on.
    pub known: KnownService,
    /// The addresses of a load balancer that opens its own connections (`ipMode` `Proxy`).
    pub proxy_addresses: Vec<IpAddr>,
}

impl Cluster {
    /// Takes a Service. One without a ClusterIP has no rules anywhere and is not kept.
    pub fn take_service(&mut self, object: &ServiceObject) {
        let key = observe::key(&object.metadata);
        self.forget_service(&key);
        let Some(known) = intake::service(object) else { return };
        let service = Service { known, proxy_addresses: proxy_addresses(object) };
        for address in service.addresses() {
            self.by_address.entry(address).or_default().insert(key.clone());
        }
        for port in &service.known.service().ports {
            if let Some(node_port) = port.node_port {
                self.by_node_port.entry((port.protocol, node_port)).or_default().insert(key.clone());
            }
        }
        self.services.insert(key, service);
    }

    fn forget_service(&mut self, key: &Key) {
        let Some(before) = self.services.remove(key) else { return };
        for address in before.addresses() {
            if let Some(keys) = self.by_address.get_mut(&address) {
                keys.remove(key);
            }
        }
        for port in &before.known.service().ports {
            let keys = port.node_port.and_then(|own| self.by_node_port.get_mut(&(port.protocol, own)));
            if let Some(keys) = keys {
                keys.remove(key);
            }
        }
    }

    /// Takes an EndpointSlice.
    pub fn take_endpoint_slice(&mut self, object: &EndpointSlice) {
        let own = observe::key(&object.metadata);
        if let Some(owner) = self.owners.remove(&own)
            && let Some(slices) = self.slices.get_mut(&owner)
        {
            slices.remove(&own.name);
        }
        let Some((service, slice)) = intake::slice(object) else { return };
        let service = Key::new(service.namespace, service.name);
        self.slices.entry(service.clone()).or_default().insert(own.name.clone(), slice);
        self.owners.insert(own, service);
    }

    /// Takes a Node.
    pub fn take_node(&mut self, object: &NodeObject) {
        self.nodes.insert(object.name_any(), Node::of(object));
    }

    /// Takes a pod. One that has ended is not kept.
    pub fn take_pod(&mut self, object: &PodObject) {
        let key = observe::key(&object.metadata);
        if let Some(before) = self.pods.remove(&key) {
            for address in before.addresses {
                if self.pod_addresses.get(&address) == Some(&key) {
                    self.pod_addresses.remove(&address);
                }
            }
        }
        let Some(pod) = Pod::of(object) else { return };
        if !pod.host_network {
            self.pod_addresses.extend(pod.addresses.iter().map(|address| (*address, key.clone())));
        }
        self.pods.insert(key, pod);
    }

    /// Takes an IngressSourcePreserve.
    pub fn take_object(&mut self, object: IngressSourcePreserve) {
        self.objects.retain(|known| known.name_any() != object.name_any());
        self.objects.push(object);
    }

    /// Takes the report of an agent.
    pub fn take_report(&mut self, object: IngressSourceNode) {
        let name = object.name_any();
        match object.status {
            Some(status) => drop(self.reports.insert(name, status)),
            None => drop(self.reports.remove(&name)),
        }
    }

    /// Sets the settings of the cluster's kube-proxy.
    pub fn set_kube_proxy(&mut self, settings: KubeProxy) {
        self.kube_proxy = Some(settings);
    }

    /// The settings of the cluster's kube-proxy, if they are known.
    pub fn kube_proxy(&self) -> Option<&KubeProxy> {
        self.kube_proxy.as_ref()
    }

    /// The Services with a ClusterIP.
    pub fn services(&self) -> &BTreeMap<Key, Service> {
        &self.services
    }

    /// A Service with its endpoints.
    pub fn with_endpoints(&self, key: &Key) -> Option<ServiceModel> {
        let slices = self.slices.get(key).into_iter().flat_map(BTreeMap::values);
        Some(self.services.get(key)?.known.with_endpoints(slices))
    }

    /// The nodes.
    pub fn nodes(&self) -> &BTreeMap<String, Node> {
        &self.nodes
    }

    /// The pods that have not ended.
    pub fn pods(&self) -> &BTreeMap<Key, Pod> {
        &self.pods
    }

    /// The objects.
    pub fn objects(&self) -> &[IngressSourcePreserve] {
        &self.objects
    }

    /// The report of a node's agent of this mode.
    pub(crate) fn report(&self, node: &str, mode: AgentMode) -> Option<&IngressSourceNodeStatus> {
        self.reports.get(&mode.report_name(node)).filter(|status| status.mode == mode)
    }

    /// The pod with an address of its own.
    pub fn pod_at(&self, address: IpAddr) -> Option<(&Key, &Pod)> {
        self.pods.get_key_value(self.pod_addresses.get(&address)?)
    }

    /// The node that has an address.
    pub fn node_at(&self, address: IpAddr) -> Option<(&String, &Node)> {
        self.nodes.iter().find(|(_, node)| node.has(address) || node.external.contains(&address))
    }

    /// The node whose pods have the addresses of a range that contains this one.
    pub(crate) fn node_of_range(&self, address: IpAddr) -> Option<&String> {
        let holds = |node: &Node| node.pod_cidrs.iter().any(|range| range.contains(&address));
        self.nodes.iter().find(|(_, node)| holds(node)).map(|(name, _)| name)
    }

    /// Whether an address belongs to pods.
    pub(crate) fn is_of_pods(&self, address: IpAddr) -> bool {
        let cluster = self.kube_proxy.iter().flat_map(|settings| &settings.cluster_cidrs);
        self.pod_addresses.contains_key(&address)
            || self.node_of_range(address).is_some()
            || cluster.into_iter().any(|range| range.contains(&address))
    }

    /// The Services that have an address.
    pub(crate) fn services_at(&self, address: IpAddr) -> impl Iterator<Item = (&Key, &Service)> {
        let keys = self.by_address.get(&address).into_iter().flatten();
        keys.filter_map(|key| self.services.get_key_value(key))
    }

    /// The Services that have a NodePort.
    pub(crate) fn services_of_port(
        &self,
        protocol: Protocol,
        port: u16,
    ) -> impl Iterator<Item = (&Key, &Service)> {
        let keys = self.by_node_port.get(&(protocol, port)).into_iter().flatten();
        keys.filter_map(|key| self.services.get_key_value(key))
    }
}

impl Service {
    /// The addresses for clients outside the cluster that nodes serve.
    pub fn external_addresses(&self) -> impl Iterator<Item = IpAddr> {
        let service = self.known.service();
        service.load_balancer_ips.iter().chain(&service.external_ips).copied()
    }

    /// Whether its addresses have a port.
    pub(crate) fn has_port(&self, protocol: Protocol, port: u16) -> bool {
        self.known.service().ports.iter().any(|each| each.protocol == protocol && each.port == port)
    }

    fn addresses(&self) -> Vec<IpAddr> {
        let service = self.known.service();
        let inside = service.cluster_ips.iter().chain(&self.proxy_addresses).copied();
        inside.chain(self.external_addresses()).collect()
    }
}

fn proxy_addresses(object: &ServiceObject) -> Vec<IpAddr> {
    let balancer = object.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let ingress = balancer.and_then(|balancer| balancer.ingress.as_ref()).into_iter().flatten();
    let proxied = ingress.filter(|each| each.ip_mode.as_deref() == Some("Proxy"));
    proxied.filter_map(|each| each.ip.as_deref()?.trim().parse().ok()).collect()
}
