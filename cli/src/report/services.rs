//! The Services in the words of the page, and the port that is followed.

use isp_paths::{Key, Protocol};
use isp_report::model::{Service, Way, WayKind};
use kube::ResourceExt;

use super::state::State;

/// Without `--service`, a report shows so many Services.
pub(super) const MOST: usize = 30;
/// Ports that clients use, in this order; else the first one.
const USUAL_PORTS: [u16; 3] = [443, 80, 8080];

/// The port of a Service that the report follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Port {
    pub(super) protocol: Protocol,
    pub(super) number: u16,
    /// The NodePort.
    pub(super) on_nodes: Option<u16>,
    /// How many other ports there are.
    pub(super) others: usize,
}

/// The port of a Service with a ClusterIP.
pub(super) fn port(state: &State<'_>, key: &Key) -> Option<Port> {
    let ports = &state.paths.cluster.services().get(key)?.known.service().ports;
    let usual = USUAL_PORTS.iter().find_map(|usual| ports.iter().find(|port| port.port == *usual));
    let chosen = usual.or_else(|| ports.first())?;
    let (protocol, others) = (chosen.protocol, ports.len() - 1);
    Some(Port { protocol, number: chosen.port, on_nodes: chosen.node_port, others })
}

/// A Service. The first stage has its addresses.
pub(super) fn service(stages: &[State<'_>], key: &Key) -> Option<Service> {
    let now = stages.first()?;
    let facts = now.cluster.services.get(key)?;
    let known = now.paths.cluster.services().get(key)?;
    let port = port(now, key)?;
    let mut ways: Vec<Way> = Vec::new();
    let mut add = |kind, address: String| ways.push(Way { kind, address });
    for address in &known.known.service().cluster_ips {
        add(WayKind::ClusterIp, std::net::SocketAddr::new(*address, port.number).to_string());
    }
    for address in known.external_addresses() {
        add(WayKind::External, std::net::SocketAddr::new(address, port.number).to_string());
    }
    if let Some(node_port) = port.on_nodes {
        add(WayKind::NodePort, node_port.to_string());
    }
    let policy = |state: &State<'_>| state.cluster.services.get(key).map(|facts| facts.policy().to_owned());
    Some(Service {
        name: key.to_string(),
        kind: facts.spec.type_.clone().unwrap_or_else(|| "ClusterIP".to_owned()),
        policies: stages.iter().map(|state| policy(state).unwrap_or_default()).collect(),
        objects: stages.iter().map(|state| state.owner(key).map(ResourceExt::name_any)).collect(),
        ways,
    })
}
