//! Services, endpoints and the node: the facts that rules depend on.
//!
//! These are plain values. The agent makes them from Kubernetes objects: it parses addresses, takes
//! only load balancer addresses whose `ipMode` is `VIP`, only the first address of an endpoint, and
//! gives absent conditions their meaning.

use std::{fmt, net::IpAddr, sync::Arc};

use ipnet::IpNet;

use crate::nft::{Family, InterfacePattern, Protocol};

/// The name of a Service.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceName {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl fmt::Display for ServiceName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.namespace, self.name)
    }
}

/// A Service, in both families.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// When it was created, in seconds. Of two Services that claim one frontend, the older one has
    /// it.
    pub created: i64,
    /// The ClusterIPs. A family without one gets no rules at all. Headless Services have none.
    pub cluster_ips: Vec<IpAddr>,
    /// `spec.externalIPs`.
    pub external_ips: Vec<IpAddr>,
    /// The addresses of the load balancer with `ipMode` `VIP`.
    pub load_balancer_ips: Vec<IpAddr>,
    /// `spec.loadBalancerSourceRanges`.
    pub source_ranges: Vec<IpNet>,
    /// `spec.internalTrafficPolicy`.
    pub internal_policy: TrafficPolicy,
    /// `spec.externalTrafficPolicy`.
    pub external_policy: TrafficPolicy,
    /// The timeout in seconds of `sessionAffinity: ClientIP`.
    pub affinity: Option<u32>,
    /// The ports.
    pub ports: Vec<ServicePort>,
}

/// A port of a Service, with its endpoints in both families.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePort {
    /// The protocol.
    pub protocol: Protocol,
    /// The port of ClusterIP, load balancer and external IPs.
    pub port: u16,
    /// The NodePort.
    pub node_port: Option<u16>,
    /// The endpoints, in the order in which the slices list them.
    pub endpoints: Vec<Endpoint>,
}

/// A traffic policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TrafficPolicy {
    /// Endpoints on all nodes.
    #[default]
    Cluster,
    /// Endpoints on this node.
    Local,
}

/// One endpoint of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Address and port.
    pub target: Target,
    /// The condition `ready`.
    pub ready: bool,
    /// The condition `serving`.
    pub serving: bool,
    /// The condition `terminating`.
    pub terminating: bool,
    /// The node; an endpoint without one is nowhere local.
    pub node: Option<Arc<str>>,
    /// `hints.forZones`.
    pub zone_hints: Vec<Arc<str>>,
    /// `hints.forNodes`.
    pub node_hints: Vec<Arc<str>>,
}

/// An address and port that packets are redirected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    /// The address.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::net::SocketAddr::new(self.address, self.port).fmt(out)
    }
}

/// The node whose rules are compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The name.
    pub name: Arc<str>,
    /// The label `topology.kubernetes.io/zone`.
    pub zone: Option<Arc<str>>,
    /// The node's own addresses; the first of a family is the primary one.
    pub addresses: Vec<IpAddr>,
    /// How traffic of the node's own pods is recognized.
    pub local_pods: LocalPods,
    /// The addresses that accept NodePort traffic.
    pub node_port_addresses: NodePortAddresses,
    /// Whether all traffic to ClusterIPs is masqueraded.
    pub masquerade_all: bool,
}

/// How traffic of the node's own pods is recognized (`detectLocalMode`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalPods {
    /// Not at all. Then ClusterIP traffic is masqueraded only if `masquerade_all` is set.
    Unknown,
    /// By source address; the first range of a family counts.
    Sources(Vec<IpNet>),
    /// By the interface that it comes from.
    Interface(InterfacePattern),
}

/// The node addresses that accept NodePort traffic. Loopback addresses never do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodePortAddresses {
    /// The primary address of each family.
    Primary,
    /// Those in the ranges. A family without a range accepts it on all addresses.
    Within(Vec<IpNet>),
}

/// What the node may see of a Service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum View {
    /// Everything.
    #[default]
    Full,
    /// No load balancer and external IPs.
    ClusterOnly,
    /// Nothing.
    Hidden,
}

impl Node {
    /// Returns the primary address of a family.
    pub fn primary(&self, family: Family) -> Option<IpAddr> {
        self.addresses.iter().copied().find(|address| Family::of(*address) == family)
    }

    /// Returns the addresses of a family that accept NodePort traffic.
    pub fn accepting(&self, family: Family) -> Vec<IpAddr> {
        let mut accepting: Vec<IpAddr> = match &self.node_port_addresses {
            NodePortAddresses::Primary => self.primary(family).into_iter().collect(),
            NodePortAddresses::Within(ranges) => {
                let ranges: Vec<_> =
                    ranges.iter().filter(|range| Family::of(range.addr()) == family).collect();
                let within =
                    |address| ranges.is_empty() || ranges.iter().any(|range| range.contains(&address));
                self.addresses.iter().copied().filter(|address| within(*address)).collect()
            }
        };
        accepting.retain(|address| Family::of(*address) == family && !address.is_loopback());
        accepting.sort_unstable();
        accepting.dedup();
        accepting
    }
}

#[cfg(test)]
mod tests;
