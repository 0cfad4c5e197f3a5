//! What should happen to a packet, told the long way round: no tables, no elements, no handles.
//!
//! It is written from the documented behaviour of kube-proxy and shares no code with the compiler:
//! it even chooses endpoints for itself.

use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use isp_dataplane::{
    model::{
        Endpoint, LocalPods, Node, NodePortAddresses, Service, ServiceName, ServicePort, Target,
        TrafficPolicy, View,
    },
    nft::{Family, InterfacePattern},
    trace::{Outcome, Packet},
};

/// A Service as a node sees it.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) name: Arc<ServiceName>,
    pub(crate) service: Service,
    pub(crate) view: View,
}

/// Everything that may happen to the packet; several outcomes are equally likely.
pub(crate) fn outcomes(services: &[Seen], node: &Node, packet: &Packet) -> BTreeSet<Outcome> {
    let family = Family::of(packet.destination);
    let services = distinct_ports(services, family);
    let services: Vec<&Seen> = services.iter().collect();
    let only = |outcome| BTreeSet::from([outcome]);

    if let Some((service, _)) = find_external(&services, packet, family)
        && !admits(service, node, packet, family)
    {
        return only(Outcome::Dropped);
    }
    if let Some((service, port)) = find_internal(&services, packet, family) {
        let masquerade = node.masquerade_all || is_local_pod(node, packet, family) == Some(false);
        let all = usable(port, node, family);
        return match service.internal_policy {
            TrafficPolicy::Cluster => reach(&all, &all, masquerade, node, packet),
            TrafficPolicy::Local => reach(&usable_here(port, node, family), &all, masquerade, node, packet),
        };
    }
    let external =
        find_external(&services, packet, family).or_else(|| find_node_port(&services, node, packet, family));
    if let Some((service, port)) = external {
        let all = usable(port, node, family);
        if service.external_policy == TrafficPolicy::Cluster {
            return reach(&all, &all, true, node, packet);
        }
        if is_local_pod(node, packet, family) == Some(true) {
            return reach(&all, &all, false, node, packet);
        }
        if is_of_node(node, packet.source) {
            return reach(&all, &all, true, node, packet);
        }
        return reach(&usable_here(port, node, family), &all, false, node, packet);
    }
    let passes_checks = packet.interface.is_none() || !is_of_node(node, packet.destination);
    if passes_checks && services.iter().any(|seen| seen.cluster_ip(family) == Some(packet.destination)) {
        return only(Outcome::Rejected);
    }
    only(Outcome::Untouched)
}

/// The Services of a family, by age and name. While one Service takes over the ClusterIP of
/// another, the first of them has the port.
fn distinct_ports(services: &[Seen], family: Family) -> Vec<Seen> {
    let mut services: Vec<Seen> = services.iter().filter(|seen| seen.exists(family)).cloned().collect();
    services
        .sort_by(|one, other| (one.service.created, &one.name).cmp(&(other.service.created, &other.name)));
    let mut taken = BTreeSet::new();
    for seen in &mut services {
        let address = seen.cluster_ip(family);
        seen.service.ports.retain(|port| taken.insert((address, port.protocol, port.port)));
    }
    services
}

/// One of the endpoints, or the error of a Service that has none for this client.
fn reach(
    endpoints: &[&Endpoint],
    anywhere: &[&Endpoint],
    masquerade: bool,
    node: &Node,
    packet: &Packet,
) -> BTreeSet<Outcome> {
    if anywhere.is_empty() {
        return BTreeSet::from([Outcome::Rejected]);
    }
    if endpoints.is_empty() {
        return BTreeSet::from([Outcome::Dropped]);
    }
    let outcome = |endpoint: &&Endpoint| {
        let Target { address, .. } = endpoint.target;
        let is_here = endpoint.node.as_ref() == Some(&node.name);
        let hairpin = is_here && address == packet.source;
        // Masquerading happens when a packet leaves. One from outside to the node itself does not.
        let leaves = packet.interface.is_none() || !is_of_node(node, address);
        Outcome::Redirected { to: endpoint.target, masqueraded: leaves && (masquerade || hairpin) }
    };
    endpoints.iter().map(outcome).collect()
}

impl Seen {
    fn cluster_ip(&self, family: Family) -> Option<IpAddr> {
        self.service.cluster_ips.iter().copied().find(|each| Family::of(*each) == family)
    }

    fn exists(&self, family: Family) -> bool {
        self.view != View::Hidden && self.cluster_ip(family).is_some()
    }

    fn port(&self, packet: &Packet) -> Option<&ServicePort> {
        self.service.ports.iter().find(|port| port.protocol == packet.protocol && port.port == packet.port)
    }
}

type Found<'a> = Option<(&'a Service, &'a ServicePort)>;

fn find_internal<'a>(services: &[&'a Seen], packet: &Packet, family: Family) -> Found<'a> {
    let mut of_address = services.iter().filter(|seen| seen.cluster_ip(family) == Some(packet.destination));
    of_address.find_map(|seen| Some((&seen.service, seen.port(packet)?)))
}

fn find_external<'a>(services: &[&'a Seen], packet: &Packet, family: Family) -> Found<'a> {
    if find_internal(services, packet, family).is_some() {
        return None;
    }
    let has = |seen: &&&Seen| {
        let Service { load_balancer_ips, external_ips, .. } = &seen.service;
        seen.view == View::Full
            && load_balancer_ips.iter().chain(external_ips).any(|each| *each == packet.destination)
    };
    services.iter().filter(has).find_map(|seen| Some((&seen.service, seen.port(packet)?)))
}

fn find_node_port<'a>(services: &[&'a Seen], node: &Node, packet: &Packet, family: Family) -> Found<'a> {
    let own: Vec<IpAddr> =
        node.addresses.iter().copied().filter(|each| Family::of(*each) == family).collect();
    let accepts = match &node.node_port_addresses {
        NodePortAddresses::Primary => own.first() == Some(&packet.destination),
        NodePortAddresses::Within(ranges) => {
            let mut ranges = ranges.iter().filter(|range| Family::of(range.addr()) == family).peekable();
            let all = ranges.peek().is_none();
            own.contains(&packet.destination)
                && (all || ranges.any(|range| range.contains(&packet.destination)))
        }
    };
    if !accepts || packet.destination.is_loopback() {
        return None;
    }
    let ports =
        services.iter().flat_map(|seen| seen.service.ports.iter().map(move |port| (&seen.service, port)));
    ports
        .into_iter()
        .find(|(_, port)| port.protocol == packet.protocol && port.node_port == Some(packet.port))
}

/// Source ranges: only for addresses of the load balancer.
fn admits(service: &Service, node: &Node, packet: &Packet, family: Family) -> bool {
    if !service.load_balancer_ips.contains(&packet.destination) {
        return true;
    }
    let ranges: Vec<_> =
        service.source_ranges.iter().filter(|range| Family::of(range.addr()) == family).collect();
    if ranges.is_empty() || ranges.iter().any(|range| range.prefix_len() == 0) {
        return true;
    }
    let within = |address: IpAddr| ranges.iter().any(|range| range.contains(&address));
    let node_ip = node.addresses.iter().copied().find(|each| Family::of(*each) == family);
    within(packet.source) || node_ip.is_some_and(within) && service.load_balancer_ips.contains(&packet.source)
}

/// Whether the packet comes from a pod of this node; nothing if that cannot be told.
fn is_local_pod(node: &Node, packet: &Packet, family: Family) -> Option<bool> {
    match &node.local_pods {
        LocalPods::Unknown => None,
        LocalPods::Sources(ranges) => {
            Some(ranges.iter().find(|range| Family::of(range.addr()) == family)?.contains(&packet.source))
        }
        LocalPods::Interface(InterfacePattern::Name(name)) => Some(packet.interface.as_ref() == Some(name)),
        LocalPods::Interface(InterfacePattern::Prefix(prefix)) => {
            Some(packet.interface.as_ref().is_some_and(|name| name.starts_with(prefix)))
        }
    }
}

fn is_of_node(node: &Node, address: IpAddr) -> bool {
    address.is_loopback() || node.addresses.contains(&address)
}

/// The cluster set.
fn usable<'a>(port: &'a ServicePort, node: &Node, family: Family) -> Vec<&'a Endpoint> {
    let endpoints = distinct(port, family);
    let ready: Vec<&Endpoint> = endpoints.iter().copied().filter(|each| each.ready).collect();
    if ready.is_empty() {
        return endpoints.into_iter().filter(|each| each.serving && each.terminating).collect();
    }
    let for_node = |each: &&Endpoint| each.node_hints.contains(&node.name);
    if ready.iter().all(|each| !each.node_hints.is_empty()) && ready.iter().any(for_node) {
        return ready.into_iter().filter(for_node).collect();
    }
    let for_zone = |each: &&Endpoint| node.zone.as_ref().is_some_and(|zone| each.zone_hints.contains(zone));
    if ready.iter().all(|each| !each.zone_hints.is_empty()) && ready.iter().any(for_zone) {
        return ready.into_iter().filter(for_zone).collect();
    }
    ready
}

/// The local set.
fn usable_here<'a>(port: &'a ServicePort, node: &Node, family: Family) -> Vec<&'a Endpoint> {
    let here: Vec<&Endpoint> =
        distinct(port, family).into_iter().filter(|each| each.node.as_ref() == Some(&node.name)).collect();
    if here.iter().any(|each| each.ready) {
        here.into_iter().filter(|each| each.ready).collect()
    } else {
        here.into_iter().filter(|each| each.serving && each.terminating).collect()
    }
}

/// Of endpoints with the same address and port, the last that does not terminate; else the first.
fn distinct(port: &ServicePort, family: Family) -> Vec<&Endpoint> {
    let of_family: Vec<&Endpoint> =
        port.endpoints.iter().filter(|each| Family::of(each.target.address) == family).collect();
    let targets: BTreeSet<Target> = of_family.iter().map(|each| each.target).collect();
    let chosen = targets.into_iter().filter_map(|target| {
        let mut same = of_family.iter().copied().filter(|each| each.target == target);
        let first = same.clone().next();
        same.rfind(|each| !each.terminating).or(first)
    });
    chosen.collect()
}
