//! Which endpoints of a port this node uses.
//!
//! The cluster set has the ready endpoints, narrowed by topology hints; if none is ready, all that
//! still serve while they terminate. The local set has the ready endpoints of this node, else those
//! of this node that still serve. The fallback is judged for each set alone.
//! `spec.trafficDistribution` is not read: the endpoint slices carry its result as hints.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use crate::{
    model::{Endpoint, Node, Service, Target},
    nft::Family,
};

/// The endpoint sets of one port on one node, each sorted and without duplicates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// The cluster set. It is empty only if the port has no usable endpoint anywhere.
    pub cluster: Vec<Target>,
    /// The local set.
    pub local: Vec<Target>,
    /// The endpoints of both sets that are on this node.
    pub on_this_node: Vec<Target>,
}

/// Chooses the endpoints of one family.
pub fn choose(endpoints: &[Endpoint], node: &Node, family: Family) -> Chosen {
    let endpoints = sorted_without_duplicates(endpoints, family);
    let hint = Hint::of(&endpoints, node);
    let is_local = |endpoint: &&Endpoint| endpoint.node.as_ref() == Some(&node.name);
    let fading = |endpoint: &&Endpoint| endpoint.serving && endpoint.terminating;

    let mut cluster: Vec<&Endpoint> =
        endpoints.iter().copied().filter(|each| each.ready && hint.admits(each, node)).collect();
    if cluster.is_empty() {
        cluster = endpoints.iter().copied().filter(fading).collect();
    }
    let mut local: Vec<&Endpoint> =
        endpoints.iter().copied().filter(is_local).filter(|each| each.ready).collect();
    if local.is_empty() {
        local = endpoints.iter().copied().filter(is_local).filter(fading).collect();
    }
    let mut on_this_node: Vec<Target> =
        cluster.iter().chain(&local).copied().filter(is_local).map(|each| each.target).collect();
    on_this_node.sort_unstable();
    on_this_node.dedup();
    Chosen { cluster: targets(&cluster), local: targets(&local), on_this_node }
}

/// The addresses of this node that answer the health checks of a Service, and the number of
/// endpoints that each tells. A family counts its own endpoints: a load balancer that asks an IPv6
/// address sends IPv6 traffic.
pub fn health_checks(service: &Service, node: &Node) -> BTreeMap<IpAddr, usize> {
    let is_served = |family: &Family| service.cluster_ips.iter().any(|each| Family::of(*each) == *family);
    let families = Family::ALL.into_iter().filter(is_served);
    let of_family = |family| {
        let ready = local_ready(service, node, family);
        node.accepting(family).into_iter().map(move |address| (address, ready))
    };
    families.flat_map(of_family).collect()
}

/// The number of endpoints of this node that a health check counts: addresses that are ready,
/// whichever port they serve.
fn local_ready(service: &Service, node: &Node, family: Family) -> usize {
    let ports = service.ports.iter().map(|port| sorted_without_duplicates(&port.endpoints, family));
    let ready = ports.flatten().filter(|each| each.ready && each.node.as_ref() == Some(&node.name));
    ready.map(|each| each.target.address).collect::<BTreeSet<_>>().len()
}

fn targets(endpoints: &[&Endpoint]) -> Vec<Target> {
    endpoints.iter().map(|each| each.target).collect()
}

/// Sorts the endpoints and keeps one for each address and port. A pod network may give the address
/// of a terminating pod to a new one, so a later endpoint replaces an earlier one unless it
/// terminates.
fn sorted_without_duplicates(endpoints: &[Endpoint], family: Family) -> Vec<&Endpoint> {
    let mut all: Vec<&Endpoint> =
        endpoints.iter().filter(|each| Family::of(each.target.address) == family).collect();
    all.sort_by_key(|each| each.target);
    all.dedup_by(|later, kept| {
        let same = later.target == kept.target;
        if same && !later.terminating {
            *kept = *later;
        }
        same
    });
    all
}

/// The topology hints that count for a port on this node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hint {
    Unused,
    SameNode,
    SameZone,
}

impl Hint {
    /// Hints count only if every ready endpoint carries them and one of them names this node or
    /// zone.
    fn of(endpoints: &[&Endpoint], node: &Node) -> Self {
        let ready = || endpoints.iter().filter(|each| each.ready);
        let all_and_one = |hints: fn(&Endpoint) -> &Vec<Arc<str>>, here: Option<&Arc<str>>| {
            let named = |each: &&Endpoint| here.is_some_and(|here| hints(each).contains(here));
            ready().all(|each| !hints(each).is_empty()) && ready().any(named)
        };
        if all_and_one(|each| &each.node_hints, Some(&node.name)) {
            Self::SameNode
        } else if all_and_one(|each| &each.zone_hints, node.zone.as_ref()) {
            Self::SameZone
        } else {
            Self::Unused
        }
    }

    fn admits(self, endpoint: &Endpoint, node: &Node) -> bool {
        match self {
            Self::Unused => true,
            Self::SameNode => endpoint.node_hints.contains(&node.name),
            Self::SameZone => node.zone.as_ref().is_some_and(|zone| endpoint.zone_hints.contains(zone)),
        }
    }
}

#[cfg(test)]
mod tests;
