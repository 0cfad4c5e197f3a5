//! The node, as the data plane needs it: from the Node object and the agent's settings. Pure.

use std::net::IpAddr;
use std::sync::Arc;

use clap::Args;
use ipnet::IpNet;
use isp_dataplane::model::{LocalPods, Node, NodePortAddresses};
use isp_dataplane::nft::InterfacePattern;
use k8s_openapi::api::core::v1::Node as NodeObject;
use kube::ResourceExt;

#[cfg(test)]
mod tests;

const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// How the agent recognizes local traffic, as kube-proxy's configuration does.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TrafficArgs {
    /// Source ranges of this node's pods. Unset: the Node's podCIDRs.
    #[arg(long, value_delimiter = ',', conflicts_with = "pod_interface")]
    pod_cidrs: Vec<IpNet>,
    /// Interface of this node's pods, such as cni0, or a prefix with an asterisk, such as eni*.
    #[arg(long, value_parser = interface_pattern)]
    pod_interface: Option<InterfacePattern>,
    /// Ranges of the node addresses that accept NodePort traffic. Unset: the primary address of
    /// each family.
    #[arg(long, value_delimiter = ',')]
    node_port_addresses: Vec<IpNet>,
    /// Masquerade all traffic to ClusterIPs.
    #[arg(long)]
    masquerade_all: bool,
}

/// Converts the node. A Node that does not exist yet has no addresses.
pub(crate) fn own_node(name: &str, object: Option<&NodeObject>, settings: &TrafficArgs) -> Node {
    let status = object.and_then(|node| node.status.as_ref());
    let addresses = status.and_then(|status| status.addresses.as_ref()).into_iter().flatten();
    let internal = addresses.filter(|address| address.type_ == "InternalIP");
    let spec = object.and_then(|node| node.spec.as_ref());
    let pod_cidrs = || -> Vec<IpNet> {
        let listed = spec.and_then(|spec| spec.pod_cidrs.clone()).unwrap_or_default();
        let first = spec.and_then(|spec| spec.pod_cidr.clone()).filter(|_| listed.is_empty());
        listed.into_iter().chain(first).filter_map(|cidr| cidr.parse().ok()).collect()
    };
    let local_pods = if let Some(pattern) = &settings.pod_interface {
        LocalPods::Interface(pattern.clone())
    } else {
        let ranges = if settings.pod_cidrs.is_empty() { pod_cidrs() } else { settings.pod_cidrs.clone() };
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

/// An interface name, or a prefix of names with an asterisk at its end.
fn interface_pattern(text: &str) -> Result<InterfacePattern, String> {
    let (name, is_prefix) = text.strip_suffix('*').map_or((text, false), |prefix| (prefix, true));
    let is_valid = |byte: u8| byte.is_ascii_graphic() && !b"/*\"\\".contains(&byte);
    // The kernel's limit is 15 bytes.
    if name.is_empty() || name.len() > 15 || !name.bytes().all(is_valid) {
        return Err(
            "use an interface name of at most 15 characters, or a prefix of one with an asterisk".to_owned()
        );
    }
    let name = name.to_owned();
    Ok(if is_prefix { InterfacePattern::Prefix(name) } else { InterfacePattern::Name(name) })
}
