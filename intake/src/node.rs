//! Converts a Node into the model of the data plane.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use isp_dataplane::model::{LocalPods, Node, NodePortAddresses};
use isp_dataplane::nft::InterfacePattern;
use k8s_openapi::api::core::v1::Node as NodeObject;
use kube::ResourceExt;

#[cfg(test)]
mod tests;

const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// How local traffic is recognized, as in kube-proxy's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrafficSettings {
    /// Source ranges of the node's pods. Empty: the Node's podCIDRs.
    pub pod_cidrs: Vec<IpNet>,
    /// The interface of the node's pods. It wins over the ranges.
    pub pod_interface: Option<InterfacePattern>,
    /// Ranges of the node addresses that accept NodePort traffic. Empty: the primary address of
    /// each family.
    pub node_port_addresses: Vec<IpNet>,
    /// Whether all traffic to ClusterIPs is masqueraded.
    pub masquerade_all: bool,
}

/// Converts a node. A Node that does not exist yet has no addresses.
pub fn node(name: &str, object: Option<&NodeObject>, settings: &TrafficSettings) -> Node {
    let status = object.and_then(|node| node.status.as_ref());
    let addresses = status.and_then(|status| status.addresses.as_ref()).into_iter().flatten();
    let internal = addresses.filter(|address| address.type_ == "InternalIP");
    let local_pods = if let Some(pattern) = &settings.pod_interface {
        LocalPods::Interface(pattern.clone())
    } else {
        let of_node = || object.map(pod_cidrs).unwrap_or_default();
        let ranges = if settings.pod_cidrs.is_empty() { of_node() } else { settings.pod_cidrs.clone() };
        if ranges.is_empty() { LocalPods::Unknown } else { LocalPods::Sources(ranges) }
    };
    Node {
        name: Arc::from(name),
        zone: object.and_then(|node| node.labels().get(ZONE_LABEL)).map(|zone| Arc::from(zone.as_str())),
        addresses: internal.filter_map(|address| address.address.parse::<IpAddr>().ok()).collect(),
        local_pods,
        node_port_addresses: if settings.node_port_addresses.is_empty() {
            NodePortAddresses::Primary
        } else {
            NodePortAddresses::Within(settings.node_port_addresses.clone())
        },
        masquerade_all: settings.masquerade_all,
    }
}

/// The ranges of a node's pods, as the Node lists them.
pub fn pod_cidrs(object: &NodeObject) -> Vec<IpNet> {
    let spec = object.spec.as_ref();
    let listed = spec.and_then(|spec| spec.pod_cidrs.clone()).unwrap_or_default();
    let first = spec.and_then(|spec| spec.pod_cidr.clone()).filter(|_| listed.is_empty());
    listed.into_iter().chain(first).filter_map(|cidr| cidr.parse().ok()).collect()
}
