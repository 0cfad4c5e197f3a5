//! Which paths of a Service are followed. Their number grows with the nodes, not with the square of
//! them: a pod connects to the NodePort of one other ingress node and one other non-ingress node.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use isp_paths::{Interception, Key, Path, Pod, Request, Source, paths};
use isp_report::model::{self, Destination, SourceKind, WayKind};

use super::journey::{journey, node, nothing};
use super::services::Port;
use super::state::State;

/// A client outside, in addresses for documentation.
const CLIENT: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(198, 51, 100, 10)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 10)),
];

/// Follows the paths of one Service in all stages.
pub(super) struct Follower<'a> {
    stages: &'a [State<'a>],
    service: &'a Key,
    port: Port,
    /// A pod of each node, not of the host network.
    pods: &'a BTreeMap<String, Key>,
    found: Vec<model::Path>,
}

/// A pod of each node that has an address of its own. Pods behind the Service come last: one that
/// reaches itself through the Service is a special case, because its node replaces the address.
/// Pods without a sidecar come first: a sidecar of the client says nothing about the node.
pub(super) fn pod_of_each_node(state: &State<'_>, service: &Key) -> BTreeMap<String, Key> {
    let endpoints = state.cluster.backends.get(service);
    let is_behind =
        |pod: &Pod| pod.addresses.iter().any(|own| endpoints.is_some_and(|all| all.contains(own)));
    let mut pods: BTreeMap<String, ((bool, bool), Key)> = BTreeMap::new();
    for (key, pod) in state.paths.cluster.pods() {
        let Some(node) = pod.node.clone().filter(|_| !pod.host_network && !pod.addresses.is_empty()) else {
            continue;
        };
        let rank = (is_behind(pod), pod.interception != Interception::None);
        if pods.get(&node).is_none_or(|(known, _)| rank < *known) {
            pods.insert(node, (rank, key.clone()));
        }
    }
    pods.into_iter().map(|(node, (_, key))| (node, key)).collect()
}

impl<'a> Follower<'a> {
    pub(super) fn new(
        stages: &'a [State<'a>],
        service: &'a Key,
        port: Port,
        pods: &'a BTreeMap<String, Key>,
    ) -> Self {
        Self { stages, service, port, pods, found: Vec::new() }
    }

    /// All paths, node by node.
    pub(super) fn paths(mut self) -> Vec<model::Path> {
        let Some(now) = self.stages.first() else { return Vec::new() };
        let Some(known) = now.paths.cluster.services().get(self.service) else { return Vec::new() };
        let at = |address: IpAddr| SocketAddr::new(address, self.port.number);
        let external: Vec<SocketAddr> = known.external_addresses().map(at).collect();
        let own: Vec<SocketAddr> = known.known.service().cluster_ips.iter().copied().map(at).collect();
        for address in &external {
            self.follow_from_outside(*address);
        }
        let nodes: Vec<String> = now.paths.cluster.nodes().keys().cloned().collect();
        for name in &nodes {
            for address in &own {
                self.follow_to_node_port(name, address.is_ipv4());
            }
        }
        for name in &nodes {
            for kind in [SourceKind::Pod, SourceKind::Host] {
                for address in &own {
                    self.follow_from_inside(name, kind, WayKind::ClusterIp, *address, None);
                }
                for address in &external {
                    self.follow_from_inside(name, kind, WayKind::External, *address, None);
                }
                for address in &own {
                    self.follow_to_node_ports(name, &nodes, kind, address.is_ipv4());
                }
            }
        }
        self.found
    }

    fn request(&self, source: Source, destination: SocketAddr) -> Request {
        Request { source, destination, protocol: self.port.protocol, entry: None }
    }

    /// From outside to an external address, by the node at which it arrives.
    fn follow_from_outside(&mut self, destination: SocketAddr) {
        let client = client(destination.is_ipv4());
        let request = self.request(Source::Outside(client), destination);
        let by_entry = |state: &State<'_>| {
            let mut entries: BTreeMap<Option<String>, Vec<Path>> = BTreeMap::new();
            for way in paths(&state.paths.cluster, &request).unwrap_or_default() {
                let entry = way.hops.iter().find_map(node).map(str::to_owned);
                entries.entry(entry).or_default().push(way);
            }
            entries
        };
        let entries: Vec<_> = self.stages.iter().map(by_entry).collect();
        let mut names: BTreeSet<Option<&String>> =
            entries.iter().flat_map(BTreeMap::keys).map(Option::as_ref).collect();
        if names.len() > 1 {
            // A stage in which it arrives nowhere says so at each node.
            names.remove(&None);
        }
        for name in names {
            let name = name.cloned();
            let journeys = self.stages.iter().zip(&entries).map(|(state, entries)| {
                match entries.get(&name).or_else(|| entries.get(&None)) {
                    Some(ways) => journey(state, self.service, name.as_deref(), ways),
                    None => nothing(
                        model::Outcome::Dropped,
                        "Traffic for this address does not arrive at these nodes any more.",
                    ),
                }
            });
            let journeys = journeys.collect();
            let to = Destination {
                kind: WayKind::External,
                address: destination.to_string(),
                nodes: name.into_iter().collect(),
            };
            self.add(outside(client), to, journeys);
        }
    }

    fn follow_to_node_port(&mut self, name: &str, is_ipv4: bool) {
        let Some(destination) = self.node_port(name, is_ipv4) else { return };
        let client = client(is_ipv4);
        let request = self.request(Source::Outside(client), destination);
        let to = Destination {
            kind: WayKind::NodePort,
            address: destination.to_string(),
            nodes: vec![name.to_owned()],
        };
        if let Some((_, journeys)) = self.journeys(&request, Some(name)) {
            self.add(outside(client), to, journeys);
        }
    }

    /// To the NodePort of another ingress node, and of another non-ingress node.
    fn follow_to_node_ports(&mut self, name: &str, nodes: &[String], kind: SourceKind, is_ipv4: bool) {
        let Some(last) = self.stages.last() else { return };
        for (is_ingress, word) in [(true, "ingress"), (false, "non-ingress")] {
            let other = nodes.iter().find(|other| *other != name && last.is_ingress(other) == is_ingress);
            let Some(other) = other else { continue };
            let (Some(destination), Some(port)) = (self.node_port(other, is_ipv4), self.port.on_nodes) else {
                continue;
            };
            let what = format!("{port} of another {word} node");
            self.follow_from_inside(name, kind, WayKind::NodePort, destination, Some((what, other)));
        }
    }

    fn follow_from_inside(
        &mut self,
        name: &str,
        kind: SourceKind,
        way: WayKind,
        destination: SocketAddr,
        other: Option<(String, &String)>,
    ) {
        let source = match kind {
            SourceKind::Pod => self.pods.get(name).cloned().map(Source::Pod),
            SourceKind::Host => Some(Source::Node(name.to_owned())),
            SourceKind::Outside => None,
        };
        let Some(source) = source else { return };
        let request = self.request(source, destination);
        let at = other.as_ref().map_or(name, |(_, other)| other.as_str());
        let Some((address, journeys)) = self.journeys(&request, Some(at)) else { return };
        let from = model::Source { kind, address, nodes: vec![name.to_owned()] };
        let address = other.map_or_else(|| destination.to_string(), |(what, _)| what);
        self.add(from, Destination { kind: way, address, nodes: Vec::new() }, journeys);
    }

    /// The source's address, and the journeys in all stages. None if the source has no address of
    /// the family.
    fn journeys(&self, request: &Request, at: Option<&str>) -> Option<(String, Vec<model::Journey>)> {
        let mut address = String::new();
        let mut journeys = Vec::new();
        for state in self.stages {
            let ways = paths(&state.paths.cluster, request).ok()?;
            address = ways.first()?.sent.source.address.to_string();
            journeys.push(journey(state, self.service, at, &ways));
        }
        Some((address, journeys))
    }

    fn node_port(&self, name: &str, is_ipv4: bool) -> Option<SocketAddr> {
        let node = self.stages.first()?.paths.cluster.nodes().get(name)?;
        let mut addresses = node.model.addresses.iter().copied();
        let address = addresses.find(|address| address.is_ipv4() == is_ipv4)?;
        Some(SocketAddr::new(address, self.port.on_nodes?))
    }

    fn add(&mut self, from: model::Source, to: Destination, journeys: Vec<model::Journey>) {
        self.found.push(model::Path { service: self.service.to_string(), from, to, journeys });
    }
}

fn client(is_ipv4: bool) -> IpAddr {
    let [v4, v6] = CLIENT;
    if is_ipv4 { v4 } else { v6 }
}

fn outside(client: IpAddr) -> model::Source {
    model::Source { kind: SourceKind::Outside, address: client.to_string(), nodes: Vec::new() }
}
