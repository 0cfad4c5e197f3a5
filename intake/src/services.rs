//! Converts Services and EndpointSlices into the model of the data plane.
//!
//! Values that the API server accepts and the data plane cannot use are skipped, as kube-proxy
//! does: addresses that do not parse, slices of host names, ports without a number.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use isp_api::view::depends_on_beside;
use isp_dataplane::model::{Endpoint, Service, ServiceName, ServicePort, Target, TrafficPolicy};
use isp_dataplane::nft::{Family, Protocol};
use k8s_openapi::api::core::v1::{Service as ServiceObject, ServiceSpec};
use k8s_openapi::api::discovery::v1::{Endpoint as EndpointObject, EndpointSlice};
use kube::ResourceExt;

#[cfg(test)]
mod tests;

/// The label by which a slice names its Service.
pub const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";
/// The timeout of `sessionAffinity: ClientIP` that the API server sets by default.
const DEFAULT_AFFINITY: u32 = 10_800;

/// The part of a Service that rules depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownService {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Whether kube-proxies skip it, or may not serve it again yet.
    pub depends_on_agent: bool,
    /// Without endpoints.
    service: Service,
    /// The names of its ports, in their order.
    port_names: Vec<String>,
    /// `spec.healthCheckNodePort`, which applies only with policy Local.
    pub health_check_node_port: Option<u16>,
}

/// The part of an EndpointSlice that rules depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownSlice {
    /// Name, protocol and number of each port.
    ports: Vec<(String, Protocol, u16)>,
    /// Endpoints without a port.
    endpoints: Vec<(IpAddr, Endpoint)>,
}

/// Converts a Service. None if it has no ClusterIP: it is headless or names a host.
pub fn service(object: &ServiceObject) -> Option<KnownService> {
    let spec = object.spec.as_ref().filter(|spec| spec.type_.as_deref() != Some("ExternalName"))?;
    let cluster_ips = cluster_ips(spec);
    if cluster_ips.is_empty() {
        return None;
    }
    let is_local = |policy: &Option<String>| match policy.as_deref() {
        Some("Local") => TrafficPolicy::Local,
        _ => TrafficPolicy::Cluster,
    };
    let external_policy = is_local(&spec.external_traffic_policy);
    let (mut ports, mut port_names) = (Vec::new(), Vec::new());
    for port in spec.ports.iter().flatten() {
        let Some((protocol, own)) = protocol(port.protocol.as_deref()).zip(number(port.port)) else {
            continue;
        };
        let node_port = port.node_port.and_then(number);
        ports.push(ServicePort { protocol, port: own, node_port, endpoints: Vec::new() });
        port_names.push(port.name.clone().unwrap_or_default());
    }
    let is_balanced = spec.type_.as_deref() == Some("LoadBalancer");
    let health_check_node_port = spec.health_check_node_port.and_then(number);
    Some(KnownService {
        labels: object.labels().clone(),
        depends_on_agent: depends_on_beside(object.labels(), object.annotations()),
        service: Service {
            created: object.metadata.creation_timestamp.as_ref().map_or(0, |time| time.0.as_second()),
            cluster_ips,
            external_ips: spec.external_ips.iter().flatten().filter_map(|ip| address(ip)).collect(),
            load_balancer_ips: load_balancer_ips(object),
            source_ranges: spec
                .load_balancer_source_ranges
                .iter()
                .flatten()
                .filter_map(|range| range.trim().parse().ok())
                .collect(),
            internal_policy: is_local(&spec.internal_traffic_policy),
            external_policy,
            affinity: affinity(spec),
            ports,
        },
        port_names,
        health_check_node_port: health_check_node_port
            .filter(|_| is_balanced && external_policy == TrafficPolicy::Local),
    })
}

fn cluster_ips(spec: &ServiceSpec) -> Vec<IpAddr> {
    let listed = spec.cluster_ips.iter().flatten();
    // `None` does not parse as an address.
    let mut ips: Vec<IpAddr> = listed.filter_map(|ip| address(ip)).collect();
    ips.extend(spec.cluster_ip.as_deref().and_then(address).filter(|_| ips.is_empty()));
    ips
}

/// Addresses with `ipMode: Proxy` are left to the load balancer.
fn load_balancer_ips(object: &ServiceObject) -> Vec<IpAddr> {
    let balancer = object.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let ingress = balancer.and_then(|balancer| balancer.ingress.as_ref()).into_iter().flatten();
    let ours = ingress.filter(|each| each.ip_mode.as_deref().is_none_or(|mode| mode == "VIP"));
    ours.filter_map(|each| each.ip.as_deref().and_then(address)).collect()
}

fn affinity(spec: &ServiceSpec) -> Option<u32> {
    if spec.session_affinity.as_deref() != Some("ClientIP") {
        return None;
    }
    let client_ip = spec.session_affinity_config.as_ref().and_then(|config| config.client_ip.as_ref());
    let seconds = client_ip.and_then(|client_ip| client_ip.timeout_seconds);
    Some(seconds.and_then(|seconds| u32::try_from(seconds).ok()).unwrap_or(DEFAULT_AFFINITY))
}

/// The Service of a slice, and its endpoints. None for slices of host names and those of no
/// Service.
pub fn slice(object: &EndpointSlice) -> Option<(ServiceName, KnownSlice)> {
    let family = match object.address_type.as_str() {
        "IPv4" => Family::Ip,
        "IPv6" => Family::Ip6,
        _ => return None,
    };
    let service = service_of(object)?;
    let ports = object.ports.iter().flatten().filter_map(|port| {
        let name = port.name.clone()?;
        Some((name, protocol(port.protocol.as_deref())?, port.port.and_then(number)?))
    });
    let endpoints = object.endpoints.iter().flatten().filter_map(|endpoint| {
        let address = endpoint.addresses.first().and_then(|text| address(text))?;
        let is_usable = Family::of(address) == family && !is_special(address);
        is_usable.then(|| (address, conditions(endpoint, address)))
    });
    Some((service, KnownSlice { ports: ports.collect(), endpoints: endpoints.collect() }))
}

/// Addresses that mean another host on each node, or none. The API server refuses them in slices;
/// an address that got past it must not lead clients to the node itself.
fn is_special(address: IpAddr) -> bool {
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    is_link_local || address.is_loopback() || address.is_unspecified() || address.is_multicast()
}

/// The Service that a slice belongs to.
pub fn service_of(object: &EndpointSlice) -> Option<ServiceName> {
    let name = object.metadata.labels.as_ref()?.get(SERVICE_NAME_LABEL)?;
    Some(ServiceName { namespace: object.metadata.namespace.clone()?, name: name.clone() })
}

/// An endpoint without its port. Unknown conditions count as ready and serving.
fn conditions(object: &EndpointObject, address: IpAddr) -> Endpoint {
    let conditions = object.conditions.clone().unwrap_or_default();
    let hints = object.hints.clone().unwrap_or_default();
    let shared = |name: String| Arc::<str>::from(name);
    Endpoint {
        target: Target { address, port: 0 },
        ready: conditions.ready.unwrap_or(true),
        serving: conditions.serving.unwrap_or(true),
        terminating: conditions.terminating.unwrap_or(false),
        node: object.node_name.clone().map(shared),
        zone_hints: hints.for_zones.into_iter().flatten().map(|zone| shared(zone.name)).collect(),
        node_hints: hints.for_nodes.into_iter().flatten().map(|node| shared(node.name)).collect(),
    }
}

impl KnownService {
    /// The Service without endpoints.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// Whether one of its ClusterIPs is among these.
    pub fn has_cluster_ip_of(&self, cluster_ips: &HashSet<IpAddr>) -> bool {
        self.service.cluster_ips.iter().any(|ip| cluster_ips.contains(ip))
    }

    /// The Service with the endpoints of its slices, in the order of the slices.
    pub fn with_endpoints<'a>(&self, slices: impl IntoIterator<Item = &'a KnownSlice>) -> Service {
        let mut service = self.service.clone();
        for slice in slices {
            for (port, name) in service.ports.iter_mut().zip(&self.port_names) {
                let is_port = |(named, protocol, _): &&(String, Protocol, u16)| {
                    named == name && *protocol == port.protocol
                };
                for (_, _, number) in slice.ports.iter().filter(is_port) {
                    port.endpoints.extend(slice.endpoints.iter().map(|(address, endpoint)| Endpoint {
                        target: Target { address: *address, port: *number },
                        ..endpoint.clone()
                    }));
                }
            }
        }
        service
    }
}

fn protocol(name: Option<&str>) -> Option<Protocol> {
    match name.unwrap_or("TCP") {
        "TCP" => Some(Protocol::Tcp),
        "UDP" => Some(Protocol::Udp),
        "SCTP" => Some(Protocol::Sctp),
        _ => None,
    }
}

fn number(port: i32) -> Option<u16> {
    u16::try_from(port).ok().filter(|port| *port != 0)
}

/// Older API servers accept IPv4 addresses with leading zeros, which are ambiguous and do not
/// parse.
fn address(text: &str) -> Option<IpAddr> {
    text.trim().parse().ok()
}
