//! The table of one Service: every kind of source against every address.

use std::net::{IpAddr, SocketAddr};

use isp_dataplane::nft::Family;
use isp_plan::Key;

use crate::cluster::{Cluster, Node};
use crate::path::Path;
use crate::request::{Impossible, Request, Source};
use crate::walk::paths;

/// A client outside that the tables ask for, in addresses for documentation.
const OUTSIDE: [IpAddr; 2] = [
    IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 10)),
    IpAddr::V6(std::net::Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 10)),
];

/// The kind of a destination.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// The ClusterIP.
    ClusterIp,
    /// The NodePort of a node.
    NodePort(String),
    /// A load balancer or external IP.
    External,
}

/// One source and one destination.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// The kind of the destination.
    pub target: Target,
    /// The connection.
    pub request: Request,
}

impl Cell {
    /// The ways that the connection can take.
    pub fn expected(&self, cluster: &Cluster) -> Result<Vec<Path>, Impossible> {
        paths(cluster, &self.request)
    }
}

/// The table of a Service with all nodes of the cluster. It has as many cells as twice the square
/// of the nodes, so see [`cells_among`] for large clusters.
pub fn cells(cluster: &Cluster, service: &Key) -> Result<Vec<Cell>, Impossible> {
    let all: Vec<&str> = cluster.nodes().keys().map(String::as_str).collect();
    cells_among(cluster, service, &all)
}

/// The table of a Service with some nodes. The sources are a client outside, a pod of each node if
/// it has one, and each node's host.
pub fn cells_among(cluster: &Cluster, service: &Key, nodes: &[&str]) -> Result<Vec<Cell>, Impossible> {
    let known = cluster.services().get(service).ok_or_else(|| Impossible::NoService(service.clone()))?;
    let model = known.known.service();
    let chosen: Vec<(&str, &Node)> =
        nodes.iter().filter_map(|name| Some((*name, cluster.nodes().get(*name)?))).collect();
    let mut cells = Vec::new();
    for port in &model.ports {
        let mut destinations: Vec<(Target, SocketAddr)> = Vec::new();
        let own = |ip: IpAddr| SocketAddr::new(ip, port.port);
        destinations.extend(model.cluster_ips.iter().map(|ip| (Target::ClusterIp, own(*ip))));
        for ip in &model.cluster_ips {
            let family = Family::of(*ip);
            let node_ports = chosen.iter().filter_map(|(name, node)| {
                let address = SocketAddr::new(node.internal(family)?, port.node_port?);
                Some((Target::NodePort((*name).to_owned()), address))
            });
            destinations.extend(node_ports);
        }
        destinations.extend(known.external_addresses().map(|ip| (Target::External, own(ip))));
        for (target, destination) in destinations {
            for source in sources(cluster, &chosen, &target, destination.ip()) {
                let request = Request { source, destination, protocol: port.protocol, entry: None };
                cells.push(Cell { target: target.clone(), request });
            }
        }
    }
    Ok(cells)
}

/// The sources of a destination. The ClusterIP is not reachable from outside.
fn sources(cluster: &Cluster, nodes: &[(&str, &Node)], target: &Target, to: IpAddr) -> Vec<Source> {
    let is_outside = |address: &&IpAddr| address.is_ipv4() == to.is_ipv4() && *target != Target::ClusterIp;
    let outside = OUTSIDE.iter().filter(is_outside).map(|address| Source::Outside(*address));
    let mut found: Vec<Source> = outside.collect();
    for (name, node) in nodes {
        let mut pods = cluster.pods().iter().filter(|(_, pod)| {
            pod.node.as_deref() == Some(*name)
                && !pod.host_network
                && pod.addresses.iter().any(|address| address.is_ipv4() == to.is_ipv4())
        });
        found.extend(pods.next().map(|(key, _)| Source::Pod(key.clone())));
        let has_family = node.internal(Family::of(to)).is_some();
        found.extend(has_family.then(|| Source::Node((*name).to_owned())));
    }
    found
}
