//! Which connections are tried: every client to every address of every port.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use isp_dataplane::nft::{Family, Protocol};
use isp_testkit::random::Random;

use crate::addresses::{FAMILIES, PRIMARY, SECOND, outside};
use crate::clients::Client;
use crate::probe::Attempt;
use crate::services::Generated;

/// A port that no Service has.
const UNDEFINED: u16 = 9;

/// A client and a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Case {
    pub(crate) client: Client,
    pub(crate) destination: SocketAddr,
    pub(crate) protocol: Protocol,
}

impl Case {
    /// The family.
    pub(crate) fn family(self) -> Family {
        Family::of(self.destination.ip())
    }

    /// A connection with one of the client's addresses.
    pub(crate) fn attempt(self, number: usize) -> Attempt {
        let sources = self.client.sources(self.family(), self.destination.ip());
        let source = sources[number % sources.len()];
        Attempt { source, destination: self.destination, protocol: self.protocol }
    }
}

/// The destinations of one port: all that lead to its endpoints.
pub(crate) fn frontends(generated: &Generated, port: usize) -> Vec<SocketAddr> {
    let service = &generated.service;
    let port = &service.ports[port];
    let addresses = service.cluster_ips.iter().chain(&service.external_ips).chain(&service.load_balancer_ips);
    let addresses =
        addresses.chain(&generated.proxied_ips).map(|address| SocketAddr::new(*address, port.port));
    let node_ports = port.node_port.into_iter().flat_map(|number| {
        let own = FAMILIES.map(|family| [PRIMARY, SECOND].map(|last| outside(family, last))).concat();
        own.into_iter().map(move |address| SocketAddr::new(address, number))
    });
    let mut frontends: Vec<SocketAddr> = addresses.chain(node_ports).collect();
    frontends.sort_unstable();
    frontends.dedup();
    frontends
}

/// All cases of a Service.
pub(crate) fn cases(dice: &mut Random, generated: &Generated) -> Vec<Case> {
    let mut cases = Vec::new();
    let service = &generated.service;
    for (place, port) in service.ports.iter().enumerate() {
        let mut destinations: Vec<(SocketAddr, Protocol)> =
            frontends(generated, place).into_iter().map(|each| (each, port.protocol)).collect();
        for address in service.cluster_ips.iter().chain(&service.load_balancer_ips) {
            let protocol = dice.pick(&[Protocol::Tcp, Protocol::Udp]);
            destinations.push((SocketAddr::new(*address, UNDEFINED), protocol));
        }
        for client in Client::ALL {
            let case = |(destination, protocol)| Case { client, destination, protocol };
            cases.extend(destinations.iter().copied().map(case));
        }
        if let Some(number) = port.node_port {
            let loopback: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            cases.extend(loopback.map(|address| Case {
                client: Client::Node,
                destination: SocketAddr::new(address, number),
                protocol: port.protocol,
            }));
        }
    }
    cases.sort_unstable();
    cases.dedup();
    cases
}
