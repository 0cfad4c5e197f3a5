//! The agent's settings of local traffic, and its node as the data plane needs it. Pure.

use clap::Args;
use ipnet::IpNet;
use isp_dataplane::model::Node;
use isp_dataplane::nft::InterfacePattern;
use isp_intake::node::TrafficSettings;
use k8s_openapi::api::core::v1::Node as NodeObject;

#[cfg(test)]
mod tests;

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

impl TrafficArgs {
    fn settings(&self) -> TrafficSettings {
        TrafficSettings {
            pod_cidrs: self.pod_cidrs.clone(),
            pod_interface: self.pod_interface.clone(),
            node_port_addresses: self.node_port_addresses.clone(),
            masquerade_all: self.masquerade_all,
        }
    }
}

/// Converts the node. A Node that does not exist yet has no addresses.
pub(crate) fn own_node(name: &str, object: Option<&NodeObject>, arguments: &TrafficArgs) -> Node {
    isp_intake::node::node(name, object, &arguments.settings())
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
