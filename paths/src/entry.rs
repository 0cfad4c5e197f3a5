//! Where traffic from outside arrives: the nodes to which a load balancer or a router sends an
//! external address.
//!
//! The API does not show routes. If an object preserves the Service, the address leads to its
//! ingress nodes; otherwise to every node. A load balancer of a Service with
//! `externalTrafficPolicy: Local` follows the health check and leaves out nodes without a ready
//! endpoint.

use std::net::SocketAddr;

use isp_dataplane::choose::health_checks;
use isp_dataplane::nft::Protocol;
use isp_plan::Key;

use crate::cluster::Cluster;
use crate::serving::{is_ingress_node, owner};

/// The nodes at which a packet to an external address may arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entries {
    /// These, for a reason.
    Nodes(Vec<String>, String),
    /// None passes the health check.
    NoneHealthy(Key),
    /// The load balancer opens its own connections.
    Proxied(Key),
    /// The address belongs to no Service.
    Unknown,
}

/// The nodes for an external address.
pub(crate) fn entries(cluster: &Cluster, destination: SocketAddr, protocol: Protocol) -> Entries {
    let address = destination.ip();
    let of_address = || cluster.services_at(address);
    let Some((key, service)) = of_address()
        .find(|(_, service)| service.has_port(protocol, destination.port()))
        .or_else(|| of_address().next())
    else {
        return Entries::Unknown;
    };
    if service.proxy_addresses.contains(&address) {
        return Entries::Proxied(key.clone());
    }
    let usable = cluster.nodes().iter().filter(|(_, node)| node.takes_traffic()).map(|(name, _)| name);
    let mut nodes: Vec<String> = usable.cloned().collect();
    let mut reason = format!("sends traffic for {address} to a node of the cluster");
    if let Some(object) = owner(cluster, key, service) {
        let ingress: Vec<String> =
            nodes.iter().filter(|node| is_ingress_node(cluster, node, object)).cloned().collect();
        if !ingress.is_empty() {
            nodes = ingress;
            reason = format!("sends traffic for {address} to an ingress node");
        }
    }
    let is_balanced = service.known.service().load_balancer_ips.contains(&address);
    if is_balanced && service.known.health_check_node_port.is_some() {
        nodes.retain(|node| is_healthy(cluster, key, node));
        if nodes.is_empty() {
            return Entries::NoneHealthy(key.clone());
        }
        reason.push_str(" that has a ready endpoint (healthCheckNodePort)");
    }
    Entries::Nodes(nodes, reason)
}

fn is_healthy(cluster: &Cluster, service: &Key, node: &str) -> bool {
    let (Some(service), Some(node)) = (cluster.with_endpoints(service), cluster.nodes().get(node)) else {
        return false;
    };
    health_checks(&service, &node.model).values().any(|ready| *ready > 0)
}
