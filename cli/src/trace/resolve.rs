//! The addresses that a client connects to, from the words of the command line. Pure.

use std::net::{IpAddr, SocketAddr};

use isp_paths::{Cluster, Impossible, Key, Protocol, Request, Source};

use super::TraceError;
use super::asked::{Destination, SourceArg};

#[cfg(test)]
mod tests;

/// The connections that are meant: one for each address that the client can reach.
pub(super) fn requests(
    cluster: &Cluster,
    from: &SourceArg,
    to: &Destination,
    protocol: Protocol,
    via: Option<&str>,
) -> Result<Vec<Request>, TraceError> {
    let source = &from.0;
    let mut destinations = match to {
        Destination::Address(address) => vec![*address],
        Destination::Node(name, port) => {
            let node = cluster.nodes().get(name).ok_or_else(|| Impossible::NoNode(name.clone()))?;
            node.model.addresses.iter().map(|address| SocketAddr::new(*address, *port)).collect()
        }
        Destination::Service(key, port) => of_service(cluster, source, key, *port, protocol)?,
    };
    if !matches!(to, Destination::Address(_)) {
        let own = addresses(cluster, source)?;
        destinations.retain(|destination| own.iter().any(|own| own.is_ipv4() == destination.is_ipv4()));
    }
    if destinations.is_empty() {
        return Err(TraceError::NoFamily { from: from.to_string(), to: to.to_string() });
    }
    let request = |destination| Request {
        source: source.clone(),
        destination,
        protocol,
        entry: via.map(str::to_owned),
    };
    Ok(destinations.into_iter().map(request).collect())
}

/// The client's own addresses.
fn addresses(cluster: &Cluster, source: &Source) -> Result<Vec<IpAddr>, Impossible> {
    match source {
        Source::Outside(address) => Ok(vec![*address]),
        Source::Node(name) => {
            let node = cluster.nodes().get(name).ok_or_else(|| Impossible::NoNode(name.clone()))?;
            Ok(node.model.addresses.clone())
        }
        Source::Pod(key) => {
            let pod = cluster.pods().get(key).ok_or_else(|| Impossible::NoPod(key.clone()))?;
            Ok(pod.addresses.clone())
        }
    }
}

/// From outside, the external addresses or the NodePort of each node; from inside, the ClusterIPs.
fn of_service(
    cluster: &Cluster,
    source: &Source,
    key: &Key,
    port: Option<u16>,
    protocol: Protocol,
) -> Result<Vec<SocketAddr>, TraceError> {
    let service = cluster.services().get(key).ok_or_else(|| Impossible::NoService(key.clone()))?;
    let model = service.known.service();
    let listed = || {
        let ports = model.ports.iter().map(|each| format!("{}/{}", each.port, each.protocol.keyword()));
        ports.collect::<Vec<_>>().join(", ")
    };
    let protocol_name = protocol.keyword();
    let mut ports = model.ports.iter().filter(|each| each.protocol == protocol);
    let chosen = match port {
        Some(port) => ports.find(|each| each.port == port).ok_or_else(|| TraceError::NoPort {
            service: key.clone(),
            protocol: protocol_name,
            port,
            ports: listed(),
        })?,
        None => match (ports.next(), ports.next()) {
            (Some(only), None) => only,
            (Some(first), Some(_)) => {
                return Err(TraceError::WhichPort {
                    service: key.clone(),
                    protocol: protocol_name,
                    ports: listed(),
                    first: first.port,
                });
            }
            (None, _) => {
                return Err(TraceError::NoPorts {
                    service: key.clone(),
                    protocol: protocol_name,
                    ports: listed(),
                });
            }
        },
    };
    if !matches!(source, Source::Outside(_)) {
        return Ok(model.cluster_ips.iter().map(|ip| SocketAddr::new(*ip, chosen.port)).collect());
    }
    let external = service.external_addresses().chain(service.proxy_addresses.iter().copied());
    let external: Vec<_> = external.map(|ip| SocketAddr::new(ip, chosen.port)).collect();
    if !external.is_empty() {
        return Ok(external);
    }
    let node_port = chosen.node_port.ok_or_else(|| TraceError::NotExposed(key.clone()))?;
    let nodes = cluster.nodes().values().flat_map(|node| &node.model.addresses);
    Ok(nodes.map(|address| SocketAddr::new(*address, node_port)).collect())
}
