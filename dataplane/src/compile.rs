//! One Service on one node, in one family: its frontends, and the endpoints behind them.
//!
//! A plan is a pure function of the Service, the node and the view. It has no numbers yet: which
//! identity a port has and which slot an endpoint is in depends on what is programmed already, and
//! [`crate::plane`] decides it.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
};

use ipnet::IpNet;

use crate::{
    choose::choose,
    layout::MOST_ENDPOINTS,
    model::{Node, Service, ServicePort, Target, TrafficPolicy, View},
    nft::{Family, Protocol},
};

/// The plan of one Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePlan {
    /// When the Service was created, in seconds.
    pub created: i64,
    /// The ClusterIP.
    pub cluster_ip: IpAddr,
    /// The ports, each with its own frontends and endpoints.
    pub ports: Vec<PortPlan>,
}

/// The plan of one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortPlan {
    /// The ClusterIP with protocol and port: what identifies the port.
    pub frontend: Frontend,
    /// The set that ClusterIP traffic gets.
    pub internal: TrafficPolicy,
    /// The set that other traffic from outside this node gets.
    pub external: TrafficPolicy,
    /// Load balancer and external IPs.
    pub external_ips: Vec<IpAddr>,
    /// The NodePort.
    pub node_port: Option<u16>,
    /// The cluster set.
    pub cluster: Vec<Target>,
    /// The local set; only if a policy is Local.
    pub local: Option<Vec<Target>>,
    /// Endpoints on this node, which need masquerading when they reach themselves.
    pub hairpins: Vec<Target>,
    /// The timeout of session affinity.
    pub affinity: Option<u32>,
    /// The source ranges.
    pub guard: Option<Guard>,
    /// The number of endpoints that exceed [`MOST_ENDPOINTS`] and are not used.
    pub left_out: usize,
}

/// An address, protocol and port that clients connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frontend {
    /// The address.
    pub address: IpAddr,
    /// The protocol.
    pub protocol: Protocol,
    /// The port.
    pub port: u16,
}

impl fmt::Display for Frontend {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.protocol.keyword(), SocketAddr::new(self.address, self.port))
    }
}

/// Source ranges of load balancer IPs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The load balancer IPs.
    pub addresses: Vec<IpAddr>,
    /// The allowed sources; none covers another, because the kernel refuses elements that overlap.
    pub sources: Vec<IpNet>,
}

/// Plans a Service in a family. There is no plan without a ClusterIP of that family, or if the node
/// must not see the Service.
pub fn compile(service: &Service, node: &Node, view: View, family: Family) -> Option<ServicePlan> {
    let of_family =
        |addresses: &[IpAddr]| sorted(addresses.iter().copied().filter(|each| Family::of(*each) == family));
    let cluster_ip = *service.cluster_ips.iter().find(|each| Family::of(**each) == family)?;
    let (balancers, external_ips) = match view {
        View::Full => (of_family(&service.load_balancer_ips), of_family(&service.external_ips)),
        View::ClusterOnly => (Vec::new(), Vec::new()),
        View::Hidden => return None,
    };
    let guard = guard(service, node, &balancers, family);
    let external_ips = sorted(balancers.into_iter().chain(external_ips));
    let mut ports: Vec<PortPlan> = Vec::with_capacity(service.ports.len());
    for port in &service.ports {
        let frontend = Frontend { address: cluster_ip, protocol: port.protocol, port: port.port };
        // The API server refuses a Service with the same port twice.
        if ports.iter().all(|other| other.frontend != frontend) {
            ports.push(plan(service, port, node, frontend, &external_ips, guard.clone()));
        }
    }
    Some(ServicePlan { created: service.created, cluster_ip, ports })
}

fn plan(
    service: &Service,
    port: &ServicePort,
    node: &Node,
    frontend: Frontend,
    external_ips: &[IpAddr],
    guard: Option<Guard>,
) -> PortPlan {
    let mut chosen = choose(&port.endpoints, node, Family::of(frontend.address));
    let is_external = port.node_port.is_some() || !external_ips.is_empty();
    let uses_local = service.internal_policy == TrafficPolicy::Local
        || is_external && service.external_policy == TrafficPolicy::Local;
    let left_out = chosen.cluster.len().saturating_sub(MOST_ENDPOINTS);
    chosen.cluster.truncate(MOST_ENDPOINTS);
    chosen.local.truncate(MOST_ENDPOINTS);
    PortPlan {
        frontend,
        internal: service.internal_policy,
        external: service.external_policy,
        external_ips: external_ips.to_vec(),
        node_port: port.node_port,
        cluster: chosen.cluster,
        local: uses_local.then_some(chosen.local),
        hairpins: chosen.on_this_node,
        affinity: service.affinity,
        guard,
        left_out,
    }
}

/// A range of all addresses means no guard. A range that holds the node allows the load balancer
/// IPs as sources, because a node that has such an address connects to it from itself.
fn guard(service: &Service, node: &Node, balancers: &[IpAddr], family: Family) -> Option<Guard> {
    let of_family = service.source_ranges.iter().filter(|range| Family::of(range.addr()) == family);
    let mut sources: Vec<IpNet> = of_family.map(IpNet::trunc).collect();
    if balancers.is_empty() || sources.is_empty() || sources.iter().any(|range| range.prefix_len() == 0) {
        return None;
    }
    if node.primary(family).is_some_and(|primary| sources.iter().any(|range| range.contains(&primary))) {
        sources.extend(balancers.iter().copied().map(IpNet::from));
    }
    // A shorter prefix sorts before the longer ones that it covers.
    sources.sort_unstable();
    sources.dedup_by(|later, kept| kept.contains(&*later));
    Some(Guard { addresses: balancers.to_vec(), sources })
}

fn sorted<T: Ord>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    values.dedup();
    values
}

#[cfg(test)]
mod tests;
