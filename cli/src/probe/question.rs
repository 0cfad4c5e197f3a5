//! The questions of a run: every destination of a Service, and how it is asked. Pure.

use std::net::{IpAddr, SocketAddr};

use k8s_openapi::api::core::v1::{Node, Service, ServicePort};

use super::table::Destination;

#[cfg(test)]
mod tests;

/// How a destination is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// The echo program, over TCP.
    Tcp,
    /// The echo program, over UDP.
    Udp,
    /// A request for this path.
    Http { path: String },
    /// A connection that is closed again.
    Connect,
}

/// A destination, and how it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) to: Destination,
    pub(crate) address: SocketAddr,
    pub(crate) how: How,
}

impl Question {
    /// As the client program reads it.
    pub(crate) fn argument(&self) -> String {
        match &self.how {
            How::Tcp => format!("tcp://{}", self.address),
            How::Udp => format!("udp://{}", self.address),
            How::Connect => format!("connect://{}", self.address),
            How::Http { path } => format!("http://{}{path}", self.address),
        }
    }
}

/// The port that is probed: the first over TCP, else the first over UDP.
pub(crate) fn port(service: &Service) -> Option<&ServicePort> {
    let ports = || service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    let speaks = |port: &&ServicePort, protocol: &str| port.protocol.as_deref().unwrap_or("TCP") == protocol;
    ports().find(|port| speaks(port, "TCP")).or_else(|| ports().find(|port| speaks(port, "UDP")))
}

/// All destinations of a port, in the order of the table: each external address, the NodePort of
/// each node, each ClusterIP.
pub(crate) fn destinations(
    service: &Service,
    port: &ServicePort,
    nodes: &[Node],
) -> Vec<(Destination, SocketAddr)> {
    let Some(number) = u16::try_from(port.port).ok() else { return Vec::new() };
    let mut found: Vec<(Destination, SocketAddr)> = external(service)
        .into_iter()
        .enumerate()
        .map(|(place, ip)| (Destination::External { number: place }, SocketAddr::new(ip, number)))
        .collect();
    let families = cluster_ips(service);
    let node_port = port.node_port.and_then(|port| u16::try_from(port).ok());
    for node in nodes {
        let name = node.metadata.name.clone().unwrap_or_default();
        let wanted = |ip: &IpAddr| families.iter().any(|family| family.is_ipv4() == ip.is_ipv4());
        for (ip, port) in internal_ips(node).into_iter().filter(wanted).zip(node_port.into_iter().cycle()) {
            found.push((Destination::NodePort { node: name.clone() }, SocketAddr::new(ip, port)));
        }
    }
    found.extend(families.into_iter().map(|ip| (Destination::ClusterIp, SocketAddr::new(ip, number))));
    found
}

/// The external addresses that nodes serve: externalIPs, and load balancers of kind VIP. Others are
/// proxies of their own, which connect from their own address.
pub(crate) fn external(service: &Service) -> Vec<IpAddr> {
    let spec = service.spec.iter().flat_map(|spec| spec.external_ips.iter().flatten()).cloned();
    let status = service.status.iter().filter_map(|status| status.load_balancer.as_ref());
    let ingress = status.flat_map(|balancer| balancer.ingress.iter().flatten());
    let vip = |kind: Option<&str>| kind.is_none_or(|kind| kind == "VIP");
    let balanced = ingress.filter(|each| vip(each.ip_mode.as_deref())).filter_map(|each| each.ip.clone());
    let mut found: Vec<IpAddr> = Vec::new();
    for ip in balanced.chain(spec).filter_map(|ip| ip.parse().ok()) {
        if !found.contains(&ip) {
            found.push(ip);
        }
    }
    found
}

fn cluster_ips(service: &Service) -> Vec<IpAddr> {
    let spec = service.spec.as_ref();
    spec.iter().flat_map(|spec| spec.cluster_ips.iter().flatten()).filter_map(|ip| ip.parse().ok()).collect()
}

/// The addresses of a node in the cluster's network, one for each family.
pub(crate) fn internal_ips(node: &Node) -> Vec<IpAddr> {
    let status = node.status.as_ref();
    let addresses = status.iter().flat_map(|status| status.addresses.iter().flatten());
    let mut found: Vec<IpAddr> = Vec::new();
    for ip in addresses.filter(|each| each.type_ == "InternalIP").filter_map(|each| each.address.parse().ok())
    {
        let ip: IpAddr = ip;
        if !found.iter().any(|other| other.is_ipv4() == ip.is_ipv4()) {
            found.push(ip);
        }
    }
    found
}
