//! The addresses that replace the client's, and whether the ranges of a policy contain them.

use std::net::IpAddr;

use super::kube_proxy;
use crate::doctor::cluster::{Cluster, Service};
use crate::doctor::judgement::Within;
use crate::doctor::ranges::Range;

/// The addresses of nodes. For SNAT, kube-proxy uses the address of the interface towards the pod:
/// the node's own, or, for a pod of the same node, one of the node's pod range.
pub(super) struct StandIns {
    nodes: Vec<Range>,
    pods: Vec<Range>,
    /// All addresses of the cluster.
    own: Vec<Range>,
}

/// Whether ranges contain the nodes, by address family.
#[derive(Clone, Copy)]
pub(super) struct Held {
    v4: Option<Within>,
    v6: Option<Within>,
}

impl StandIns {
    pub(super) fn of(cluster: &Cluster) -> Self {
        let nodes = || cluster.nodes.values();
        let addresses =
            nodes().flat_map(|node| if node.internal.is_empty() { &node.addresses } else { &node.internal });
        let addresses: Vec<Range> = addresses.map(|address| Range::from(*address)).collect();
        let pods: Vec<Range> = nodes().flat_map(|node| node.pod_ranges.iter().copied()).collect();
        let all = nodes().flat_map(|node| &node.addresses).map(|address| Range::from(*address));
        let own = all.chain(pods.iter().copied()).chain(kube_proxy::pod_network(cluster)).collect();
        Self { nodes: addresses, pods, own }
    }

    /// Whether the ranges contain only pods and nodes of the cluster.
    pub(super) fn are_all_of(&self, ranges: &[Range]) -> bool {
        let own = |range: &Range| self.own.iter().any(|own| own.holds(*range));
        !ranges.is_empty() && ranges.iter().all(own)
    }

    pub(super) fn held_by(&self, ranges: &[Range]) -> Held {
        let of_family = |v4: bool| {
            let of = |all: &[Range]| all.iter().copied().filter(|one| one.is_v4() == v4).collect::<Vec<_>>();
            let (nodes, pods) = (of(&self.nodes), of(&self.pods));
            match within(&nodes, ranges)? {
                // The address that a pod on the receiving node sees.
                Within::None if pods.iter().any(|pods| holds(ranges, *pods)) => Some(Within::Some),
                held => Some(held),
            }
        };
        Held { v4: of_family(true), v6: of_family(false) }
    }
}

impl Held {
    /// For a Service, by the families that it has.
    pub(super) fn for_service(self, service: &Service) -> Within {
        let families = service.spec.ip_families.as_deref().unwrap_or_default();
        let has = |name: &str| families.is_empty() || families.iter().any(|family| family == name);
        let held = [self.v4.filter(|_| has("IPv4")), self.v6.filter(|_| has("IPv6"))];
        held.into_iter()
            .flatten()
            .reduce(|a, b| if a == b { a } else { Within::Some })
            .unwrap_or(Within::None)
    }
}

fn holds(ranges: &[Range], one: Range) -> bool {
    ranges.iter().any(|range| range.holds(one))
}

fn within(all: &[Range], ranges: &[Range]) -> Option<Within> {
    let held = all.iter().filter(|one| holds(ranges, **one)).count();
    match held {
        _ if all.is_empty() => None,
        0 => Some(Within::None),
        _ if held == all.len() => Some(Within::All),
        _ => Some(Within::Some),
    }
}

/// Whether ranges contain these addresses.
pub(super) fn addresses_within(addresses: &[IpAddr], ranges: &[Range]) -> Within {
    let all: Vec<Range> = addresses.iter().map(|address| Range::from(*address)).collect();
    within(&all, ranges).unwrap_or(Within::None)
}
