//! Generated Services: the fields that decide how a node treats a packet. Pure.

use std::net::Ipv4Addr;

use isp_testkit::random::{Deck, Random};

use crate::pods::{NODES, PodRef};

pub(crate) const NAMESPACE: &str = "traced";
/// The label of Services that the object preserves.
pub(crate) const OWNED: (&str, &str) = ("traced", "owned");
/// The port of each Service.
pub(crate) const PORT: u16 = 80;

/// How a Service is exposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exposure {
    ClusterIp,
    ExternalIps,
    NodePort,
    NodePortWithExternalIps,
    LoadBalancer,
    /// With `loadBalancerSourceRanges`.
    GuardedLoadBalancer,
    /// With `ipMode: Proxy`.
    ProxyingLoadBalancer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Policy {
    Cluster,
    Local,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protocol {
    Tcp,
    Udp,
}

/// Which endpoints a Service has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layout {
    Nothing,
    One,
    Several,
    WithHostNetwork,
    OnlyNotReady,
    OnlyTerminating,
    Mixed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Ready,
    NotReady,
    Terminating,
}

/// A Service as it is written.
#[derive(Clone, Debug)]
pub(crate) struct Generated {
    pub(crate) name: String,
    /// Whether the object preserves it.
    pub(crate) owned: bool,
    pub(crate) exposure: Exposure,
    pub(crate) external: Policy,
    pub(crate) internal: Policy,
    pub(crate) sticky: bool,
    pub(crate) protocol: Protocol,
    pub(crate) layout: Layout,
    pub(crate) endpoints: Vec<(PodRef, Condition)>,
    /// `externalIPs`: the first one leads to where routers send it, the second to one node.
    pub(crate) external_ips: Vec<Ipv4Addr>,
    pub(crate) pinned_to: &'static str,
    pub(crate) balanced: Option<Ipv4Addr>,
    pub(crate) ranges: Vec<&'static str>,
}

/// Draws Services so that a few of them have every property.
pub(crate) struct Generator {
    exposures: Deck<Exposure>,
    externals: Deck<Policy>,
    internals: Deck<Policy>,
    sticky: Deck<bool>,
    protocols: Deck<Protocol>,
    layouts: Deck<Layout>,
    made: usize,
}

impl Generator {
    pub(crate) fn new() -> Self {
        Self {
            exposures: Deck::new(&Exposure::ALL),
            externals: Deck::new(&[Policy::Cluster, Policy::Local]),
            internals: Deck::new(&[Policy::Cluster, Policy::Cluster, Policy::Local]),
            sticky: Deck::new(&[false, false, true]),
            protocols: Deck::new(&[Protocol::Tcp, Protocol::Tcp, Protocol::Udp]),
            layouts: Deck::new(&Layout::ALL),
            made: 0,
        }
    }

    /// The Services of one state, half of them for the object if there is one.
    pub(crate) fn services(&mut self, random: &mut Random, count: usize, is_owned: bool) -> Vec<Generated> {
        let mut addresses = (100..=250).map(|last| Ipv4Addr::new(192, 0, 2, last));
        (0..count).map(|place| self.service(random, is_owned && place % 2 == 0, &mut addresses)).collect()
    }

    fn service(
        &mut self,
        random: &mut Random,
        owned: bool,
        addresses: &mut impl Iterator<Item = Ipv4Addr>,
    ) -> Generated {
        self.made += 1;
        // The operator accepts only Services that are exposed, with an endpoint on an ingress node.
        let exposure =
            self.exposures.draw_where(random, |each| !owned || *each != Exposure::ClusterIp).unwrap();
        let layout = self.layouts.draw_where(random, |each| !owned || each.is_ready_somewhere()).unwrap();
        let mut endpoints = layout.endpoints(random);
        if owned {
            let first = PodRef { node: NODES[0], name: random.pick(&["a", "b"]) };
            endpoints.retain(|(pod, _)| *pod != first);
            endpoints.insert(0, (first, Condition::Ready));
        }
        let external_ips = match exposure {
            Exposure::ExternalIps | Exposure::NodePortWithExternalIps => addresses.by_ref().take(2).collect(),
            _ => Vec::new(),
        };
        let balanced = exposure.is_load_balancer().then(|| addresses.next().unwrap());
        let is_guarded = exposure == Exposure::GuardedLoadBalancer;
        Generated {
            name: format!("s{}", self.made),
            owned,
            exposure,
            external: self.externals.draw(random),
            internal: self.internals.draw(random),
            sticky: self.sticky.draw(random),
            protocol: self.protocols.draw(random),
            layout,
            endpoints,
            external_ips,
            pinned_to: random.pick(&NODES),
            balanced,
            ranges: if is_guarded { ranges(random) } else { Vec::new() },
        }
    }
}

/// At least one range: of a client, of the nodes, or of pods.
fn ranges(random: &mut Random) -> Vec<&'static str> {
    let all = ["198.51.100.0/24", "203.0.113.0/24", "10.90.0.0/24", "10.244.1.0/24", "10.244.0.0/16"];
    let mut ranges = random.some(&all, 2);
    if ranges.is_empty() {
        ranges.push(random.pick(&all));
    }
    ranges
}

impl Exposure {
    pub(crate) const ALL: [Self; 7] = [
        Self::ClusterIp,
        Self::ExternalIps,
        Self::NodePort,
        Self::NodePortWithExternalIps,
        Self::LoadBalancer,
        Self::GuardedLoadBalancer,
        Self::ProxyingLoadBalancer,
    ];

    fn is_load_balancer(self) -> bool {
        matches!(self, Self::LoadBalancer | Self::GuardedLoadBalancer | Self::ProxyingLoadBalancer)
    }
}

impl Layout {
    pub(crate) const ALL: [Self; 7] = [
        Self::Nothing,
        Self::One,
        Self::Several,
        Self::WithHostNetwork,
        Self::OnlyNotReady,
        Self::OnlyTerminating,
        Self::Mixed,
    ];

    fn is_ready_somewhere(self) -> bool {
        !matches!(self, Self::Nothing | Self::OnlyNotReady | Self::OnlyTerminating)
    }

    fn endpoints(self, random: &mut Random) -> Vec<(PodRef, Condition)> {
        let plain = PodRef::with_own_address();
        let some = |random: &mut Random, pods: &[PodRef], least: usize| {
            let mut chosen = random.some(pods, least + 2);
            while chosen.len() < least {
                let next = random.pick(pods);
                if !chosen.contains(&next) {
                    chosen.push(next);
                }
            }
            chosen
        };
        let all = |pods: Vec<PodRef>, condition| pods.into_iter().map(|pod| (pod, condition)).collect();
        match self {
            Self::Nothing => Vec::new(),
            Self::One => vec![(random.pick(&plain), Condition::Ready)],
            Self::Several => all(some(random, &plain, 2), Condition::Ready),
            Self::WithHostNetwork => {
                let mut pods = random.some(&plain, 1);
                pods.extend(some(random, &PodRef::on_host_network(), 1));
                all(pods, Condition::Ready)
            }
            Self::OnlyNotReady => all(some(random, &plain, 1), Condition::NotReady),
            Self::OnlyTerminating => all(some(random, &plain, 1), Condition::Terminating),
            Self::Mixed => {
                let pods = some(random, &plain, 3).into_iter().enumerate();
                let conditions = [Condition::Ready, Condition::Terminating, Condition::NotReady];
                pods.map(|(place, pod)| (pod, conditions[place % 3])).collect()
            }
        }
    }
}

impl Protocol {
    pub(crate) fn keyword(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }

    /// The port on which pods answer.
    pub(crate) fn of_pods(self) -> u16 {
        match self {
            Self::Tcp => 8081,
            Self::Udp => 8082,
        }
    }
}
