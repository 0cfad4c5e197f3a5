//! The facts about a pod: its addresses, and the proxy that gets its connections.

use std::net::IpAddr;

use isp_api::names::{INTERCEPTION_MODE_ANNOTATION, REDIRECT_CONTAINER};
use isp_api::sidecar::Sidecar;
use isp_dataplane::redirect::{Inbound, Ports, Settings};
use k8s_openapi::api::core::v1::{Container, Pod as PodObject, PodSpec};

const ISTIO_PROXY: &str = "istio-proxy";
/// Istio's mark on a pod whose traffic ztunnel intercepts.
const AMBIENT_ANNOTATION: &str = "ambient.istio.io/redirection";
const INCLUDE_INBOUND: &str = "traffic.sidecar.istio.io/includeInboundPorts";
const EXCLUDE_INBOUND: &str = "traffic.sidecar.istio.io/excludeInboundPorts";

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// Its node; none if it is not scheduled.
    pub node: Option<String>,
    /// Whether it uses the network of its node.
    pub host_network: bool,
    /// Ports that its containers declare.
    pub ports: Vec<u16>,
    /// Which proxy gets the connections to it.
    pub interception: Interception,
}

/// Which proxy gets the connections to a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interception {
    /// None: the application accepts them.
    None,
    /// An Istio sidecar.
    Sidecar {
        /// The mode in force; none if the proxy and the pod's rules have different ones.
        mode: Option<String>,
        /// Ports whose connections go to the application directly.
        excluded: Vec<u16>,
        /// If set, only connections to these ports go to the sidecar.
        included: Option<Vec<u16>>,
    },
    /// The pod is an Istio gateway.
    Gateway,
    /// ztunnel of its node.
    Ambient,
    /// A proxy of the pod's own, through the init container `pod-redirect`. None: its arguments
    /// cannot be parsed.
    Redirect(Option<Box<Settings>>),
}

impl Pod {
    pub(super) fn of(object: &PodObject) -> Option<Self> {
        let spec = object.spec.as_ref()?;
        let status = object.status.as_ref();
        if matches!(status.and_then(|status| status.phase.as_deref()), Some("Succeeded" | "Failed")) {
            return None;
        }
        let ips = status.and_then(|status| status.pod_ips.as_ref()).into_iter().flatten();
        let mut addresses: Vec<IpAddr> = ips.filter_map(|ip| ip.ip.parse().ok()).collect();
        if addresses.is_empty() {
            let first = status.and_then(|status| status.pod_ip.as_deref());
            addresses.extend(first.and_then(|ip| ip.parse::<IpAddr>().ok()));
        }
        let ports = containers(spec).flat_map(|container| container.ports.iter().flatten());
        Some(Self {
            addresses,
            node: spec.node_name.clone(),
            host_network: spec.host_network.unwrap_or(false),
            ports: ports.filter_map(|port| u16::try_from(port.container_port).ok()).collect(),
            interception: Interception::of(object, spec),
        })
    }
}

impl Interception {
    fn of(object: &PodObject, spec: &PodSpec) -> Self {
        let annotation = |name: &str| object.metadata.annotations.as_ref().and_then(|all| all.get(name));
        let proxy = containers(spec).find(|container| container.name == ISTIO_PROXY);
        let is_router = |proxy: &Container| proxy.args.iter().flatten().take(2).any(|word| word == "router");
        if proxy.is_some_and(is_router) {
            return Self::Gateway;
        }
        if let Some(sidecar) = Sidecar::of(object) {
            // With istio-cni the rules follow the annotation.
            let rules = sidecar.rules.as_ref().or_else(|| annotation(INTERCEPTION_MODE_ANNOTATION));
            let agrees = rules.is_none_or(|rules| *rules == sidecar.proxy);
            let included = annotation(INCLUDE_INBOUND).filter(|text| text.trim() != "*");
            return Self::Sidecar {
                mode: agrees.then_some(sidecar.proxy),
                excluded: annotation(EXCLUDE_INBOUND).map(|text| ports(text)).unwrap_or_default(),
                included: included.map(|text| ports(text)),
            };
        }
        let redirect = spec.init_containers.iter().flatten().find(|each| each.name == REDIRECT_CONTAINER);
        if let Some(redirect) = redirect {
            let arguments = redirect.args.clone().unwrap_or_default();
            return Self::Redirect(Settings::parse(arguments).ok().map(Box::new));
        }
        let is_ambient = annotation(AMBIENT_ANNOTATION).is_some_and(|value| value == "enabled");
        if is_ambient { Self::Ambient } else { Self::None }
    }
}

/// Whether a pod's own proxy gets the connections to a port.
pub(crate) fn redirects(inbound: &Inbound, port: u16) -> bool {
    let is_meant = match &inbound.ports {
        Ports::All => true,
        Ports::Some(ranges) => ranges.iter().any(|range| range.contains(port)),
    };
    is_meant && !inbound.except_ports.iter().any(|range| range.contains(port))
}

fn containers(spec: &PodSpec) -> impl Iterator<Item = &Container> {
    spec.containers.iter().chain(spec.init_containers.iter().flatten())
}

fn ports(text: &str) -> Vec<u16> {
    text.split(',').filter_map(|port| port.trim().parse().ok()).collect()
}
