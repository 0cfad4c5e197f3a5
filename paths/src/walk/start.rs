//! The first steps of a packet.

use std::net::IpAddr;

use isp_dataplane::nft::{Family, Protocol};

use super::{Client, State, Walk};
use crate::address::{Address, Flow};
use crate::cluster::{Cluster, Interception, Pod};
use crate::path::{Actor, Outcome, Place};
use crate::request::{Impossible, Request, Source, family_name};
use crate::rules::From;

impl<'a> Walk<'a> {
    pub(super) fn new(cluster: &'a Cluster, request: &'a Request) -> Result<Self, Impossible> {
        let destination = request.destination.ip();
        if destination.is_loopback() || destination.is_multicast() || destination.is_unspecified() {
            return Err(Impossible::NotRouted(destination));
        }
        if let Some(entry) = request.entry.as_ref().filter(|entry| !cluster.nodes().contains_key(*entry)) {
            return Err(Impossible::NoNode(entry.clone()));
        }
        let client = client(cluster, &request.source, destination)?;
        let source = Address::exact(client.address);
        let sent = Flow { source, destination: request.destination };
        Ok(Self { cluster, request, client, sent, found: Vec::new() })
    }

    pub(super) fn start(&mut self) {
        let mut state = State { flow: self.sent.clone(), hops: Vec::new(), redirected: false };
        match &self.request.source {
            Source::Outside(_) => self.start_outside(state),
            Source::Node(node) => {
                self.choose_source(node, &mut state);
                self.arrive(node, state, From::Host);
            }
            Source::Pod(key) => {
                let Some(pod) = self.cluster.pods().get(key) else { return };
                let Some(node) = pod.node.clone() else { return };
                if pod.host_network {
                    return self.arrive(&node, state, From::Host);
                }
                self.note_own_sidecar(pod, &mut state);
                self.arrive(&node, state, From::Pod);
            }
        }
    }

    fn start_outside(&mut self, state: State) {
        let destination = state.flow.destination;
        let address = destination.ip();
        if let Some((name, _)) = self.cluster.node_at(address) {
            let name = name.clone();
            return self.reach_node(&name, state);
        }
        let is_cluster_ip = self
            .cluster
            .services_at(address)
            .any(|(_, service)| service.known.service().cluster_ips.contains(&address));
        if is_cluster_ip || self.cluster.is_of_pods(address) {
            if let Some(entry) = self.request.entry.clone() {
                return self.arrive(&entry, state, From::Elsewhere);
            }
            let reason = format!(
                "{address} is an address inside the cluster; whether the network outside has a route to it is not in the API, so \
                 name the node at which it arrives"
            );
            return self.end(state, Outcome::Unclear { reason });
        }
        self.enter(state);
    }

    /// A process of a node that connects to a pod of the node gets the address of the pods' bridge.
    fn choose_source(&self, node: &str, state: &mut State) {
        let destination = state.flow.destination.ip();
        let is_own = self.cluster.pod_at(destination).and_then(|(_, pod)| pod.node.as_deref()) == Some(node);
        let own = self.cluster.nodes().get(node).filter(|_| is_own);
        if let Some(source) = own.and_then(|own| own.masquerade(Family::of(destination), true)) {
            state.flow.source = source;
        }
    }

    fn note_own_sidecar(&self, pod: &Pod, state: &mut State) {
        let is_sidecar = matches!(&pod.interception, Interception::Sidecar { .. });
        if let (Source::Pod(key), true, Protocol::Tcp) =
            (&self.request.source, is_sidecar, self.request.protocol)
        {
            let reason = "the pod's own sidecar opens the connection, with the pod's address; for a Service of the mesh it may \
                          choose an endpoint itself, and the node's rules for the Service do not apply";
            let flow = state.flow.clone();
            state.pass(Place::Pod(key.clone()), Actor::Sidecar, reason.to_owned(), true, flow);
        }
    }
}

fn client(cluster: &Cluster, source: &Source, destination: IpAddr) -> Result<Client, Impossible> {
    let family = Family::of(destination);
    let of_family = |address: &IpAddr| Family::of(*address) == family;
    let other_family = |source_name: String| Impossible::OtherFamily {
        source_name,
        family: family_name(destination),
        destination,
    };
    match source {
        Source::Outside(address) if !of_family(address) => Err(other_family(address.to_string())),
        Source::Outside(address) => Ok(Client { address: *address, node: None }),
        Source::Node(name) => {
            let node = cluster.nodes().get(name).ok_or_else(|| Impossible::NoNode(name.clone()))?;
            let address = node.internal(family).ok_or_else(|| other_family(format!("node {name}")))?;
            Ok(Client { address, node: Some(name.clone()) })
        }
        Source::Pod(key) => {
            let pod = cluster.pods().get(key).ok_or_else(|| Impossible::NoPod(key.clone()))?;
            let node = pod.node.clone().filter(|node| cluster.nodes().contains_key(node));
            let node = node.ok_or_else(|| Impossible::NotScheduled(key.clone()))?;
            let address = pod.addresses.iter().copied().find(of_family);
            let address = address.ok_or_else(|| other_family(format!("pod {key}")))?;
            Ok(Client { address, node: Some(node) })
        }
    }
}
