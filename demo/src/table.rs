//! Sources, destinations, and the source IP that each hop sees. Pure.

mod expect;
mod print;

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use serde::Serialize;

pub(crate) use self::expect::{Faults, expected, faults};
pub(crate) use self::print::{differences, lines};

/// The source IP that an application behind a sidecar in REDIRECT mode sees for every client.
pub(crate) const SIDECAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 6));

/// The source of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Asker {
    /// An external client in the range that the policy admits.
    Client,
    /// An external client in another range.
    OtherClient,
    /// A pod on a non-ingress node.
    Pod,
    /// The host network of that node.
    Host,
}

impl Asker {
    pub(crate) const ALL: [Self; 4] = [Self::Client, Self::OtherClient, Self::Pod, Self::Host];

    pub(crate) fn is_outside(self) -> bool {
        matches!(self, Self::Client | Self::OtherClient)
    }
}

/// The destination of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Target {
    /// The external IP, which the router sends to the ingress node.
    ExternalAddress,
    /// The NodePort on the ingress node.
    IngressNodePort,
    /// The NodePort on a non-ingress node that is not the source's own.
    OtherNodePort,
    /// The ClusterIP, from inside the cluster.
    ClusterIp,
}

impl Target {
    pub(crate) const ALL: [Self; 4] =
        [Self::ExternalAddress, Self::IngressNodePort, Self::OtherNodePort, Self::ClusterIp];
}

/// All requests of a table. The ClusterIP is not reachable from outside.
pub(crate) fn questions() -> impl Iterator<Item = (Asker, Target)> {
    let all = Target::ALL.into_iter().flat_map(|target| Asker::ALL.map(|asker| (asker, target)));
    all.filter(|(asker, target)| !(asker.is_outside() && *target == Target::ClusterIp))
}

/// The stage of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Stage {
    Before,
    After,
    Restored,
}

/// The demo's addresses in one IP family.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    pub(crate) client: IpAddr,
    pub(crate) other_client: IpAddr,
    /// The source pod, and its node.
    pub(crate) pod: IpAddr,
    pub(crate) host: IpAddr,
    /// The ingress node's address on the fabric, and on its pod bridge.
    pub(crate) ingress_node: IpAddr,
    pub(crate) ingress_bridge: IpAddr,
    /// The non-ingress node whose NodePort is the destination.
    pub(crate) other_node: IpAddr,
    /// The external IP, the ClusterIP and the NodePort of the Service.
    pub(crate) external: IpAddr,
    pub(crate) cluster_ip: IpAddr,
    pub(crate) node_port: u16,
    /// The gateway pod's address, with Istio.
    pub(crate) gateway: Option<IpAddr>,
}

impl Addresses {
    /// The source's own address.
    pub(crate) fn of(&self, asker: Asker) -> IpAddr {
        match asker {
            Asker::Client => self.client,
            Asker::OtherClient => self.other_client,
            Asker::Pod => self.pod,
            Asker::Host => self.host,
        }
    }

    pub(crate) fn target(&self, target: Target) -> SocketAddr {
        let (address, port) = match target {
            Target::ExternalAddress => (self.external, 80),
            Target::IngressNodePort => (self.ingress_node, self.node_port),
            Target::OtherNodePort => (self.other_node, self.node_port),
            Target::ClusterIp => (self.cluster_ip, 80),
        };
        SocketAddr::new(address, port)
    }
}

/// The result of a successful request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Seen {
    /// The source IP that the gateway saw, with Istio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gateway: Option<IpAddr>,
    /// The peer address that the application saw.
    pub(crate) application: IpAddr,
    /// The HTTP status of the request that the policy guards.
    pub(crate) status: u16,
    /// Whether the request reached the external IP through the router, as from outside, or was
    /// intercepted by the source's own node. Set only where both are possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) through_router: Option<bool>,
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Outcome {
    Seen(Seen),
    /// The reason why there was no answer.
    Silent(String),
}

impl Outcome {
    /// Compares outcomes, but not the reasons for no answer, which depend on the kernel.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Seen(one), Self::Seen(other)) => one == other,
            (Self::Silent(_), Self::Silent(_)) => true,
            _ => false,
        }
    }
}

/// One request and its result.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cell {
    pub(crate) from: Asker,
    pub(crate) to: Target,
    /// The source's own address.
    pub(crate) own: IpAddr,
    /// The destination address.
    pub(crate) address: String,
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
    /// What is wrong from the point of view of a policy on source IPs.
    pub(crate) wrong: Faults,
    /// The expected result at this stage, if the actual one differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unexpected: Option<Outcome>,
}

/// All results of a stage.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Table {
    pub(crate) stage: Stage,
    pub(crate) cells: Vec<Cell>,
}

impl Table {
    pub(crate) fn is_as_it_should_be(&self) -> bool {
        self.cells.iter().all(|cell| cell.unexpected.is_none())
    }
}

impl Cell {
    pub(crate) fn new(
        stage: Stage,
        from: Asker,
        to: Target,
        addresses: &Addresses,
        outcome: Outcome,
    ) -> Self {
        let expected = expected(stage, from, to, addresses);
        Self {
            from,
            to,
            own: addresses.of(from),
            address: addresses.target(to).to_string(),
            wrong: faults(from, to, addresses, &outcome),
            unexpected: (!outcome.is_like(&expected)).then_some(expected),
            outcome,
        }
    }
}

impl fmt::Display for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Client => "client",
            Self::OtherClient => "other client",
            Self::Pod => "pod, other node",
            Self::Host => "host, other node",
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::ExternalAddress => "external IP",
            Self::IngressNodePort => "NodePort, ingress node",
            Self::OtherNodePort => "NodePort, other node",
            Self::ClusterIp => "ClusterIP",
        })
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Before => "before",
            Self::After => "after",
            Self::Restored => "restored",
        })
    }
}

#[cfg(test)]
mod tests;
