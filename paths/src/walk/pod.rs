//! The last steps of a packet: in the pod, or on the host network of a node.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use isp_dataplane::nft::Protocol;
use isp_plan::Key;

use super::{State, Walk};
use crate::address::{Address, Flow};
use crate::cluster::{Interception, Pod, redirects};
use crate::path::{Actor, Delivery, Outcome, Place};
use crate::rules::why_not;

impl Walk<'_> {
    pub(super) fn reach_pod(&mut self, key: &Key, pod: &Pod, mut state: State) {
        let network = state.flow.source.clone();
        let (proxy, application) = match self.intercept(key, pod, &mut state) {
            Ok(seen) => seen,
            Err(reason) => return self.end(state, Outcome::Unclear { reason }),
        };
        let gateway = pod.interception == Interception::Gateway;
        let mut delivery = Delivery {
            pod: Some(key.clone()),
            node: pod.node.clone(),
            destination: state.flow.destination,
            network,
            proxy,
            application,
            gateway,
            kept: false,
        };
        delivery.kept = self.is_kept(&delivery);
        self.end(state, Outcome::Delivered(Box::new(delivery)));
    }

    /// Which address the proxy in a pod sees, and which the application.
    fn intercept(
        &self,
        key: &Key,
        pod: &Pod,
        state: &mut State,
    ) -> Result<(Option<Address>, Option<Address>), String> {
        let peer = state.flow.source.clone();
        let port = state.flow.destination.port();
        let place = Place::Pod(key.clone());
        let direct = Ok((None, Some(peer.clone())));
        // Sidecars and redirects get TCP only.
        if self.request.protocol != Protocol::Tcp && pod.interception != Interception::Gateway {
            return direct;
        }
        match &pod.interception {
            Interception::None => direct,
            Interception::Gateway => {
                let reason = "the gateway sees this source IP, and writes it to X-Forwarded-For; applications behind it see the \
                              gateway as their peer";
                let flow = state.flow.clone();
                state.pass(place, Actor::Gateway, reason.to_owned(), false, flow);
                let own = pod.addresses.iter().find(|own| own.is_ipv4() == peer.address.is_ipv4());
                Ok((Some(peer), own.map(|own| Address::exact(*own))))
            }
            Interception::Ambient => {
                let reason = "ztunnel of the node accepts the connection and connects to the application with the client's address";
                let flow = state.flow.clone();
                state.pass(place, Actor::Ztunnel, reason.to_owned(), true, flow);
                Ok((Some(peer.clone()), Some(peer)))
            }
            Interception::Sidecar { excluded, included, .. }
                if excluded.contains(&port)
                    || included.as_ref().is_some_and(|ports| !ports.contains(&port)) =>
            {
                direct
            }
            Interception::Sidecar { mode, .. } => by_sidecar(place, mode.as_deref(), state),
            Interception::Redirect(None) => {
                Err(format!("the arguments of the init container pod-redirect of pod {key} cannot be parsed"))
            }
            Interception::Redirect(Some(settings)) => match &settings.inbound {
                Some(inbound) if redirects(inbound, port) => {
                    let reason = format!(
                        "{} hands the connection to the pod's own proxy on port {}, which sees this source IP; whether it passes the \
                         address on to the application depends on the proxy",
                        inbound.method.name(),
                        inbound.port
                    );
                    let flow = state.flow.clone();
                    state.pass(place, Actor::PodRedirect, reason, false, flow);
                    Ok((Some(peer), None))
                }
                _ => direct,
            },
        }
    }

    /// An address of the pod network without a known pod.
    pub(super) fn reach_unknown_pod(&mut self, state: State) {
        let address = state.flow.destination.ip();
        if !state.redirected {
            let reason = format!("{address} is an address of the pod network, and no known pod has it");
            return self.end(state, Outcome::Unclear { reason });
        }
        let node = self.cluster.node_of_range(address).cloned();
        let pod = None;
        self.deliver_directly(state, node, pod);
    }

    /// The host network of a node.
    pub(super) fn reach_host(&mut self, node: &str, state: State) {
        let destination = state.flow.destination;
        let is_on = |pod: &Pod| pod.host_network && pod.node.as_deref() == Some(node);
        let mut listening = self
            .cluster
            .pods()
            .iter()
            .filter(|(_, pod)| is_on(pod) && pod.ports.contains(&destination.port()))
            .map(|(key, _)| key.clone());
        let pod = listening.next().filter(|_| listening.next().is_none());
        if state.redirected || pod.is_some() {
            return self.deliver_directly(state, Some(node.to_owned()), pod);
        }
        let protocol = self.request.protocol;
        let node_port = self.cluster.services_of_port(protocol, destination.port()).next();
        let outcome = if let Some((service, _)) = node_port {
            let why = why_not(self.cluster, node, destination, protocol);
            let reason = format!(
                "no rule of node {node} serves the NodePort of Service {service} at {destination}{why}, and nothing listens there"
            );
            Outcome::Refused { reason }
        } else {
            let reason = format!(
                "{destination} is no NodePort; whether a process of node {node} listens there is not in the API"
            );
            Outcome::Unclear { reason }
        };
        self.end(state, outcome);
    }

    fn deliver_directly(&mut self, state: State, node: Option<String>, pod: Option<Key>) {
        let source = state.flow.source.clone();
        let mut delivery = Delivery {
            pod,
            node,
            destination: state.flow.destination,
            network: source.clone(),
            proxy: None,
            application: Some(source),
            gateway: false,
            kept: false,
        };
        delivery.kept = self.is_kept(&delivery);
        self.end(state, Outcome::Delivered(Box::new(delivery)));
    }

    /// Whether the source that counts is the client's. Traffic of the cluster itself may have any
    /// address of the client's own node.
    fn is_kept(&self, delivery: &Delivery) -> bool {
        let seen = delivery.seen().unwrap_or(&delivery.network);
        let is_own_node = || self.client.node.is_some() && seen.node == self.client.node;
        seen.address == self.client.address || is_own_node()
    }
}

/// Which address a sidecar sees, and which its application.
fn by_sidecar(
    place: Place,
    mode: Option<&str>,
    state: &mut State,
) -> Result<(Option<Address>, Option<Address>), String> {
    let peer = state.flow.source.clone();
    match mode {
        Some("TPROXY") => {
            let reason =
                "mode TPROXY: the sidecar connects to the application with the address of its own peer";
            let flow = state.flow.clone();
            state.pass(place, Actor::Sidecar, reason.to_owned(), false, flow);
            Ok((Some(peer.clone()), Some(peer)))
        }
        Some("REDIRECT") => {
            let own = Address::exact(loopback_of_sidecar(peer.address));
            let after = Flow { source: own.clone(), destination: state.flow.destination };
            let reason =
                format!("mode REDIRECT: the sidecar connects to the application from {}", own.address);
            state.pass(place, Actor::Sidecar, reason, false, after);
            Ok((Some(peer), Some(own)))
        }
        Some("NONE") => Ok((None, Some(peer))),
        Some(other) => Err(format!("{place}: the sidecar has the unknown interception mode {other:?}")),
        None => Err(format!(
            "{place}: the sidecar and the rules of the pod have different interception modes; recreate the pod"
        )),
    }
}

/// The address from which a sidecar in mode REDIRECT connects to its application.
fn loopback_of_sidecar(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V4(_) => Ipv4Addr::new(127, 0, 0, 6).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0, 0, 0, 0, 0, 0, 0, 6).into(),
    }
}
