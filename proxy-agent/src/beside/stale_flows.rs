//! Tracked UDP connections that lead to an endpoint that is gone. A UDP client that keeps its
//! source port would keep sending there.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

use isp_dataplane::compile::{PortPlan, ServicePlan};
use isp_dataplane::model::{Node, Target};
use isp_dataplane::netlink::conntrack::{Family as Flows, Flow};
use isp_dataplane::nft::{Family, Protocol};
use isp_kernel::{Conntrack, ConntrackError};

#[cfg(test)]
mod tests;

/// The frontends of changed UDP ports, each with the endpoints that may still answer there.
pub(crate) struct StaleFlows<'a> {
    node: &'a Node,
    allowed: HashMap<SocketAddr, HashSet<SocketAddr>>,
}

impl<'a> StaleFlows<'a> {
    pub(crate) fn new(node: &'a Node) -> Self {
        Self { node, allowed: HashMap::new() }
    }

    /// Adds a Service whose plan changes. Endpoints that were added make no connection stale.
    pub(crate) fn add(&mut self, before: Option<&ServicePlan>, after: Option<&ServicePlan>) {
        let Some(before) = before else { return };
        for old in before.ports.iter().filter(|port| port.frontend.protocol == Protocol::Udp) {
            let new = after.and_then(|after| after.ports.iter().find(|new| new.frontend == old.frontend));
            let (had, has): (HashSet<_>, HashSet<_>) =
                (endpoints(old).collect(), new.into_iter().flat_map(endpoints).collect());
            let (was, is): (HashSet<_>, HashSet<_>) = (
                self.frontends(old).into_iter().collect(),
                new.map(|new| self.frontends(new)).unwrap_or_default().into_iter().collect(),
            );
            for frontend in was {
                if !is.contains(&frontend) {
                    self.allowed.insert(frontend, HashSet::new());
                } else if !had.is_subset(&has) {
                    self.allowed.insert(frontend, has.clone());
                }
            }
        }
    }

    /// Adds a Service of which nobody knows what it had before.
    pub(crate) fn add_unknown(&mut self, plan: &ServicePlan) {
        for port in plan.ports.iter().filter(|port| port.frontend.protocol == Protocol::Udp) {
            let has: HashSet<_> = endpoints(port).collect();
            let frontends = self.frontends(port).into_iter();
            self.allowed.extend(frontends.map(|frontend| (frontend, has.clone())));
        }
    }

    /// All addresses and ports by which clients reach a port.
    fn frontends(&self, port: &PortPlan) -> Vec<SocketAddr> {
        let own = port.frontend;
        let family = Family::of(own.address);
        let addresses = [own.address].into_iter().chain(port.external_ips.iter().copied());
        let addresses = addresses.map(|address| SocketAddr::new(address, own.port));
        let node_port = port.node_port.into_iter().flat_map(|node_port| {
            self.node.accepting(family).into_iter().map(move |address| SocketAddr::new(address, node_port))
        });
        addresses.chain(node_port).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.allowed.is_empty()
    }

    /// Whether the connection goes to an endpoint that no longer serves.
    fn is_stale(&self, flow: &Flow) -> bool {
        let allowed = self.allowed.get(&flow.original.destination);
        allowed.is_some_and(|allowed| !allowed.contains(&flow.reply.source))
    }

    /// Deletes the stale connections and returns their number.
    pub(crate) fn delete(&self, conntrack: &mut Conntrack) -> Result<usize, ConntrackError> {
        let mut deleted = 0;
        for (family, flows) in [(Family::Ip, Flows::V4), (Family::Ip6, Flows::V6)] {
            if self.allowed.keys().any(|frontend| Family::of(frontend.ip()) == family) {
                deleted += conntrack.delete(flows, Protocol::Udp.number(), |flow| self.is_stale(flow))?;
            }
        }
        Ok(deleted)
    }
}

fn endpoints(port: &PortPlan) -> impl Iterator<Item = SocketAddr> {
    let all = port.cluster.iter().chain(port.local.iter().flatten());
    all.map(|Target { address, port }| SocketAddr::new(*address, *port))
}
