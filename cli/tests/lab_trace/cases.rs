//! The cases: who connects to which address. Pure.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use isp_lab::Place;
use isp_testkit::random::{Deck, Random};
use isp_testkit::web_lab::CLIENT;

use crate::pods::{NODES, PodRef};
use crate::services::{Exposure, NAMESPACE, PORT, Protocol};
use crate::world::Written;

/// A port that no Service has.
const OTHER_PORT: u16 = 9;
/// The second client outside.
pub(crate) const CLIENT_2: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 10));

/// The kind of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SourceKind {
    Outside,
    Pod,
    /// A pod that is an endpoint of the Service.
    Endpoint,
    HostNetworkPod,
    Host,
}

/// A client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    Client,
    Client2,
    Pod(PodRef),
    Host(&'static str),
}

/// The kind of a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    ClusterIp,
    NodePort,
    /// An external IP that the router sends to where the documentation says.
    ExternalIp,
    /// An external IP that the router sends to one node.
    ExternalIpOfOneNode,
    BalancedIp,
    /// An address of a load balancer with `ipMode: Proxy`.
    ProxyingIp,
    /// A port that the Service does not have, at its ClusterIP or at an external address.
    OtherPort,
}

/// A connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Case {
    /// The place of the Service in the state's list.
    pub(crate) service: usize,
    pub(crate) name: String,
    pub(crate) kind: SourceKind,
    pub(crate) source: Source,
    pub(crate) target: Target,
    pub(crate) destination: SocketAddr,
    /// The node of a NodePort.
    node: Option<&'static str>,
    /// The node to which the router sends the destination, if it is not where load balancers would.
    pub(crate) via: Option<&'static str>,
    pub(crate) protocol: Protocol,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.arguments().join(" "))
    }
}

impl Source {
    pub(crate) fn place(self) -> Place {
        match self {
            Self::Client => Place::Client,
            Self::Client2 => Place::Client2,
            Self::Pod(pod) => pod.place(),
            Self::Host(node) => Place::Node(node.to_owned()),
        }
    }

    fn argument(self) -> String {
        match self {
            Self::Client => CLIENT.to_string(),
            Self::Client2 => CLIENT_2.to_string(),
            Self::Pod(pod) => format!("pod/{NAMESPACE}/{}", pod.full_name()),
            Self::Host(node) => format!("node/{node}"),
        }
    }
}

impl Case {
    /// The arguments of `kubectl isp`, as a user would type them.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let to = match (self.target, self.node) {
            (Target::ClusterIp, _) if self.kind != SourceKind::Outside => {
                format!("svc/{NAMESPACE}/{}", self.name)
            }
            (_, Some(node)) => format!("node/{node}:{}", self.destination.port()),
            _ => self.destination.to_string(),
        };
        let mut arguments =
            ["trace", "--from", &self.source.argument(), "--to", &to].map(str::to_owned).to_vec();
        arguments.extend(["--protocol", self.protocol.keyword()].map(str::to_owned));
        arguments.extend(self.via.into_iter().flat_map(|node| ["--via", node]).map(str::to_owned));
        arguments
    }

    /// The destination for `echo survey`.
    pub(crate) fn url(&self) -> String {
        format!("{}://{}", self.protocol.keyword(), self.destination)
    }
}

/// Draws cases so that a few of them have every kind of client and destination.
pub(crate) struct Draw {
    sources: Deck<SourceKind>,
    targets: Deck<Target>,
}

impl Draw {
    pub(crate) fn new() -> Self {
        Self { sources: Deck::new(&SourceKind::ALL), targets: Deck::new(&Target::ALL) }
    }

    /// So many different cases of a state's Services. Services with few cases come first.
    pub(crate) fn cases(&mut self, random: &mut Random, services: &[Written], count: usize) -> Vec<Case> {
        let mut drawn: BTreeSet<Case> = BTreeSet::new();
        let mut of_service = vec![0; services.len()];
        while drawn.len() < count {
            let fewest = of_service.iter().min().copied().unwrap();
            let places: Vec<usize> =
                (0..services.len()).filter(|place| of_service[*place] <= fewest + 1).collect();
            let has = |target: &Target| places.iter().any(|place| target.is_of(&services[*place]));
            let target = self.targets.draw_where(random, has).unwrap();
            let fitting: Vec<usize> =
                places.iter().copied().filter(|place| target.is_of(&services[*place])).collect();
            let place = random.pick(&fitting);
            let endpoints = endpoint_pods(&services[place]);
            let exists = |kind: &SourceKind| *kind != SourceKind::Endpoint || !endpoints.is_empty();
            let kind = self.sources.draw_where(random, exists).unwrap();
            if drawn.insert(case(random, place, &services[place], kind, target)) {
                of_service[place] += 1;
            }
        }
        drawn.into_iter().collect()
    }
}

fn case(random: &mut Random, place: usize, service: &Written, kind: SourceKind, target: Target) -> Case {
    let generated = &service.generated;
    let endpoints = endpoint_pods(service);
    let source = match kind {
        SourceKind::Outside => random.pick(&[Source::Client, Source::Client2]),
        SourceKind::Host => Source::Host(random.pick(&NODES)),
        SourceKind::HostNetworkPod => Source::Pod(random.pick(&PodRef::on_host_network())),
        SourceKind::Endpoint => Source::Pod(random.pick(&endpoints)),
        SourceKind::Pod => {
            let others = PodRef::with_own_address();
            let others: Vec<_> = others.into_iter().filter(|pod| !endpoints.contains(pod)).collect();
            Source::Pod(random.pick(&others))
        }
    };
    let node = (target == Target::NodePort).then(|| random.pick(&NODES));
    let external: Vec<Ipv4Addr> =
        generated.external_ips.iter().take(1).copied().chain(generated.balanced).collect();
    let address: IpAddr = match target {
        Target::ClusterIp => service.cluster_ip.into(),
        Target::ExternalIp => generated.external_ips[0].into(),
        Target::ExternalIpOfOneNode => generated.external_ips[1].into(),
        Target::BalancedIp | Target::ProxyingIp => generated.balanced.unwrap().into(),
        // Only clients inside reach a ClusterIP without a route.
        Target::OtherPort if external.is_empty() || kind != SourceKind::Outside && random.chance(50) => {
            service.cluster_ip.into()
        }
        Target::OtherPort => random.pick(&external).into(),
        Target::NodePort => node_address(node.unwrap()).into(),
    };
    let port = match target {
        Target::NodePort => service.node_port.unwrap(),
        Target::OtherPort => OTHER_PORT,
        _ => PORT,
    };
    let is_from_outside = kind == SourceKind::Outside && address == IpAddr::V4(service.cluster_ip);
    let is_routed_by_hand = target == Target::ExternalIpOfOneNode || is_from_outside;
    Case {
        service: place,
        name: generated.name.clone(),
        kind,
        source,
        target,
        destination: SocketAddr::new(address, port),
        node,
        via: is_routed_by_hand.then_some(generated.pinned_to),
        protocol: generated.protocol,
    }
}

/// Pods with an address of their own that are endpoints in whatever condition.
fn endpoint_pods(service: &Written) -> Vec<PodRef> {
    let pods = service.generated.endpoints.iter().map(|(pod, _)| *pod);
    pods.filter(|pod| !pod.is_on_host_network()).collect()
}

impl SourceKind {
    pub(crate) const ALL: [Self; 5] =
        [Self::Outside, Self::Pod, Self::Endpoint, Self::HostNetworkPod, Self::Host];
}

impl Target {
    pub(crate) const ALL: [Self; 7] = [
        Self::ClusterIp,
        Self::NodePort,
        Self::ExternalIp,
        Self::ExternalIpOfOneNode,
        Self::BalancedIp,
        Self::ProxyingIp,
        Self::OtherPort,
    ];

    fn is_of(self, service: &Written) -> bool {
        let Written { generated, node_port, .. } = service;
        let is_proxying = generated.exposure == Exposure::ProxyingLoadBalancer;
        match self {
            Self::ClusterIp => true,
            // A port that a proxying balancer does not have says nothing.
            Self::OtherPort => !is_proxying,
            Self::NodePort => node_port.is_some(),
            Self::ExternalIp | Self::ExternalIpOfOneNode => !generated.external_ips.is_empty(),
            Self::BalancedIp => generated.balanced.is_some() && !is_proxying,
            Self::ProxyingIp => is_proxying,
        }
    }
}

/// The address of a node in the lab.
fn node_address(node: &str) -> Ipv4Addr {
    let place = NODES.iter().position(|known| *known == node).unwrap();
    Ipv4Addr::new(10, 90, 0, 11 + u8::try_from(place).unwrap())
}
