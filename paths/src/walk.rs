//! Follows a packet from place to place until its way ends. Where a node chooses among endpoints,
//! or an address leads to several nodes, the way splits.

mod pod;
mod start;

use std::net::{IpAddr, SocketAddr};

use isp_dataplane::model::Target;
use isp_dataplane::nft::Family;
use isp_plan::Key;

use crate::address::{Address, Flow};
use crate::cluster::Cluster;
use crate::entry::{Entries, entries};
use crate::kube_proxy::ProxyMode;
use crate::path::{Actor, Hop, Outcome, Path, Place};
use crate::request::{Impossible, Request};
use crate::rules::{Arrived, End, From, effects, why_not};

/// A packet that meets the same node more often than this goes in circles.
const MOST_HOPS: usize = 24;

/// Endpoints and entry nodes multiply. More ways than this are refused, not cut.
const MOST_PATHS: usize = 50_000;

/// All ways that the first packet of a connection can take. Each endpoint and each entry node that
/// may be chosen has its own.
pub fn paths(cluster: &Cluster, request: &Request) -> Result<Vec<Path>, Impossible> {
    let mut walk = Walk::new(cluster, request)?;
    walk.start();
    if walk.found.len() > MOST_PATHS { Err(Impossible::TooMany(MOST_PATHS)) } else { Ok(walk.found) }
}

/// A packet on its way, with the hops so far.
#[derive(Clone)]
struct State {
    flow: Flow,
    hops: Vec<Hop>,
    /// Whether rules have redirected it to an endpoint.
    redirected: bool,
}

/// The client.
struct Client {
    address: IpAddr,
    /// The node that it is on; none outside the cluster.
    node: Option<String>,
}

struct Walk<'a> {
    cluster: &'a Cluster,
    request: &'a Request,
    client: Client,
    sent: Flow,
    found: Vec<Path>,
}

impl Walk<'_> {
    /// Comes in from outside, through the load balancer or a router.
    fn enter(&mut self, state: State) {
        let destination = state.flow.destination;
        let (nodes, reason) = match (
            entries(self.cluster, destination, self.request.protocol),
            &self.request.entry,
        ) {
            (Entries::Proxied(service), _) => {
                let reason = format!(
                    "the load balancer of Service {service} opens its own connections for {} (ipMode Proxy): the cluster sees the \
                     balancer's address, and the client's only in the PROXY protocol or a header",
                    destination.ip()
                );
                return self.end(state, Outcome::Unclear { reason });
            }
            (_, Some(entry)) => {
                (vec![entry.clone()], format!("sends traffic for {} to the named node", destination.ip()))
            }
            (Entries::Unknown, None) => {
                let reason = format!("{} belongs to no Service of the cluster", destination.ip());
                return self.end(state, Outcome::Unclear { reason });
            }
            (Entries::NoneHealthy(service), None) => {
                let reason = format!(
                    "the load balancer sends it to no node: externalTrafficPolicy of Service {service} is Local, and no node that \
                     the load balancer uses has a ready endpoint"
                );
                return self.end(state, Outcome::Dropped { reason });
            }
            (Entries::Nodes(nodes, reason), None) => (nodes, reason),
        };
        if nodes.is_empty() {
            let reason = format!("no node of the cluster is Ready to take traffic for {}", destination.ip());
            return self.end(state, Outcome::Dropped { reason });
        }
        for node in nodes {
            let mut state = state.clone();
            let flow = state.flow.clone();
            let assumed = self.request.entry.is_none();
            state.pass(Place::Outside, Actor::LoadBalancer, format!("{reason}: {node}"), assumed, flow);
            let source = state.flow.source.address;
            if self.cluster.nodes().get(&node).is_some_and(|own| own.has(source)) {
                let reason = format!(
                    "the packet comes back to node {node}, which drops packets from outside with its own address as the source"
                );
                self.end(state, Outcome::Dropped { reason });
                continue;
            }
            self.arrive(&node, state, From::Elsewhere);
        }
    }

    /// Meets the rules of a node.
    fn arrive(&mut self, node: &str, state: State, from: From) {
        if self.found.len() > MOST_PATHS {
            return;
        }
        if state.hops.len() > MOST_HOPS {
            let reason = "the nodes send the packet in circles".to_owned();
            return self.end(state, Outcome::Dropped { reason });
        }
        let packet = Arrived {
            source: state.flow.source.clone(),
            destination: state.flow.destination,
            protocol: self.request.protocol,
            from,
        };
        let effects = effects(self.cluster, node, &packet);
        if effects.is_empty() {
            return self.send(node, state, from);
        }
        for effect in effects {
            let mut state = state.clone();
            let mut after = state.flow.clone();
            if let End::Redirected { to, masqueraded } = effect.end {
                after.destination = SocketAddr::new(to.address, to.port);
                match self.masquerade(node, to) {
                    Some(source) if masqueraded => after.source = source,
                    None if masqueraded => {
                        let reason = format!(
                            "node {node} replaces the source IP by one of its own (SNAT), and its object has no address of \
                             that family"
                        );
                        self.end(state, Outcome::Unclear { reason });
                        continue;
                    }
                    _ => {}
                }
            }
            let place = Place::Node(node.to_owned());
            let reason = effect.reason.clone();
            state.pass(place, effect.actor, effect.reason, false, after);
            if let Some(hop) = state.hops.last_mut() {
                hop.rules = effect.rules;
            }
            match effect.end {
                End::Redirected { .. } => {
                    state.redirected = true;
                    self.send(node, state, from);
                }
                End::Refused => self.end(state, Outcome::Refused { reason }),
                End::Dropped => self.end(state, Outcome::Dropped { reason }),
                End::Unclear => self.end(state, Outcome::Unclear { reason }),
            }
        }
    }

    /// Leaves the rules of a node behind, towards the destination.
    fn send(&mut self, node: &str, mut state: State, from: From) {
        let destination = state.flow.destination.ip();
        let own = self.cluster.nodes().get(node);
        if own.is_some_and(|own| own.has(destination)) {
            return self.reach_host(node, state);
        }
        if let Some((key, pod)) = self.cluster.pod_at(destination) {
            let (key, pod) = (key.clone(), pod.clone());
            return self.reach_pod(&key, &pod, state);
        }
        if self.cluster.is_of_pods(destination) {
            return self.reach_unknown_pod(state);
        }
        if let Some((other, _)) = self.cluster.node_at(destination) {
            let other = other.clone();
            self.masquerade_by_plugin(node, from, &mut state);
            return self.reach_node(&other, state);
        }
        self.leave(node, state, from);
    }

    /// Comes from another machine to an address of a node.
    fn reach_node(&mut self, name: &str, mut state: State) {
        let address = state.flow.destination.ip();
        let node = self.cluster.nodes().get(name);
        let node = node.filter(|node| node.external.contains(&address));
        if let Some(internal) = node.and_then(|node| node.internal(Family::of(address))) {
            let mut after = state.flow.clone();
            after.destination.set_ip(internal);
            let reason = format!("translates the external address of node {name} to its internal one");
            state.pass(Place::Outside, Actor::LoadBalancer, reason, true, after);
        }
        self.arrive(name, state, From::Elsewhere);
    }

    fn leave(&mut self, node: &str, mut state: State, from: From) {
        let destination = state.flow.destination;
        let address = destination.ip();
        let services: Vec<&Key> = self.cluster.services_at(address).map(|(key, _)| key).collect();
        if state.redirected || services.is_empty() {
            self.masquerade_by_plugin(node, from, &mut state);
            let source = state.flow.source.clone();
            let whose = if state.redirected {
                "no known pod or node has the address of this endpoint"
            } else {
                "it is an address outside the cluster"
            };
            return self.end(state, Outcome::Leaves { source, reason: format!("{address}: {whose}") });
        }
        let why = why_not(self.cluster, node, destination, self.request.protocol);
        let is_inside = self
            .cluster
            .services_at(address)
            .any(|(_, service)| service.known.service().cluster_ips.contains(&address));
        let not_served = format!("no rule of node {node} serves the ClusterIP {address}{why}");
        if is_inside && self.cluster.kube_proxy().is_some_and(|settings| settings.mode == ProxyMode::Nftables)
        {
            // In this mode kube-proxy drops packets to ClusterIPs that it does not serve.
            return self.end(state, Outcome::Dropped { reason: not_served });
        }
        let flow = state.flow.clone();
        let reason = format!(
            "no rule of the node intercepts {destination}{why}, so it leaves the node like traffic to any other host"
        );
        state.pass(Place::Node(node.to_owned()), Actor::Routes, reason, false, flow);
        if is_inside {
            let reason = format!("{not_served}, and no other host has this address");
            return self.end(state, Outcome::Dropped { reason });
        }
        if from == From::Elsewhere {
            let reason = format!(
                "no rule of node {node} serves {destination}{why}, so the node sends it back to the network"
            );
            return self.end(state, Outcome::Dropped { reason });
        }
        self.masquerade_by_plugin(node, from, &mut state);
        self.enter(state);
    }

    /// The network outside does not know the addresses of pods.
    fn masquerade_by_plugin(&self, node: &str, from: From, state: &mut State) {
        if from != From::Pod || !self.cluster.is_of_pods(state.flow.source.address) {
            return;
        }
        let family = Family::of(state.flow.destination.ip());
        let Some(source) = self.cluster.nodes().get(node).and_then(|own| own.internal(family)) else {
            return;
        };
        let mut after = state.flow.clone();
        after.source = Address::of_node(node, source, Vec::new());
        let reason = "the destination is outside the pod network, so the source IP becomes the node's (SNAT); most network plugins do this";
        state.pass(Place::Node(node.to_owned()), Actor::NetworkPlugin, reason.to_owned(), true, after);
    }

    /// The address that a node gives packets to an endpoint.
    fn masquerade(&self, node: &str, to: Target) -> Option<Address> {
        let own = self.cluster.nodes().get(node)?;
        let pod = self.cluster.pod_at(to.address).and_then(|(_, pod)| pod.node.as_ref());
        let of_pod = pod.or_else(|| self.cluster.node_of_range(to.address));
        own.masquerade(Family::of(to.address), of_pod.is_some_and(|of_pod| of_pod == node))
    }

    fn end(&mut self, state: State, outcome: Outcome) {
        self.found.push(Path { sent: self.sent.clone(), hops: state.hops, outcome });
    }
}

impl State {
    /// Adds a hop after which the addresses are these.
    fn pass(&mut self, place: Place, actor: Actor, reason: String, assumed: bool, after: Flow) {
        let before = std::mem::replace(&mut self.flow, after.clone());
        self.hops.push(Hop { place, actor, reason, rules: Vec::new(), before, after, assumed });
    }
}
