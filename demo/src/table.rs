//! Who asks whom, and what is seen of him on the way. Pure.

mod expect;
mod print;

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use serde::Serialize;

pub(crate) use self::expect::{Faults, expected, faults};
pub(crate) use self::print::{differences, lines};

/// Where the address of whoever calls an application through a redirecting sidecar is lost.
pub(crate) const SIDECAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 6));

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Asker {
    /// Outside, in the range that the policy lets in.
    Client,
    /// Outside, in another range.
    OtherClient,
    /// A pod on a non-ingress node.
    Pod,
    /// That node itself.
    Host,
}

impl Asker {
    pub(crate) const ALL: [Self; 4] = [Self::Client, Self::OtherClient, Self::Pod, Self::Host];

    pub(crate) fn is_outside(self) -> bool {
        matches!(self, Self::Client | Self::OtherClient)
    }
}

/// Whom he asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Target {
    /// The address that the router sends to the ingress node.
    ExternalAddress,
    /// The node port, at the ingress node.
    IngressNodePort,
    /// The node port, at a non-ingress node that is not the asker's.
    OtherNodePort,
    /// From inside.
    ClusterIp,
}

impl Target {
    pub(crate) const ALL: [Self; 4] =
        [Self::ExternalAddress, Self::IngressNodePort, Self::OtherNodePort, Self::ClusterIp];
}

/// What there is to ask: nobody outside can ask the ClusterIP.
pub(crate) fn questions() -> impl Iterator<Item = (Asker, Target)> {
    let all = Target::ALL.into_iter().flat_map(|target| Asker::ALL.map(|asker| (asker, target)));
    all.filter(|(asker, target)| !(asker.is_outside() && *target == Target::ClusterIp))
}

/// When it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Stage {
    Before,
    After,
    Restored,
}

/// The addresses of the story in one IP family.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    pub(crate) client: IpAddr,
    pub(crate) other_client: IpAddr,
    /// The pod that asks, and its node.
    pub(crate) pod: IpAddr,
    pub(crate) host: IpAddr,
    /// The ingress node, and the one that it has towards its own pods.
    pub(crate) ingress_node: IpAddr,
    pub(crate) ingress_bridge: IpAddr,
    /// The non-ingress node whose node port is asked.
    pub(crate) other_node: IpAddr,
    /// The external address, the Service's own, and its node port.
    pub(crate) external: IpAddr,
    pub(crate) cluster_ip: IpAddr,
    pub(crate) node_port: u16,
    /// The gateway's pod, in a mesh.
    pub(crate) gateway: Option<IpAddr>,
}

impl Addresses {
    /// His own.
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

/// What was seen of him.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Seen {
    /// By the gateway, in a mesh.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gateway: Option<IpAddr>,
    /// By the application: its peer.
    pub(crate) application: IpAddr,
    /// What the policy made of him.
    pub(crate) status: u16,
    /// Whether the external address was reached through the router, as it is from outside, or by a short cut of the asker's
    /// own node. Told only where it can differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) through_router: Option<bool>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Outcome {
    Seen(Seen),
    /// And why.
    Silent(String),
}

impl Outcome {
    /// Why there was no answer is the kernel's affair.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Seen(one), Self::Seen(other)) => one == other,
            (Self::Silent(_), Self::Silent(_)) => true,
            _ => false,
        }
    }
}

/// One question and what came of it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cell {
    pub(crate) from: Asker,
    pub(crate) to: Target,
    /// The asker's own address.
    pub(crate) own: IpAddr,
    /// Where he asked.
    pub(crate) address: String,
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
    /// What is not as whoever wrote the policy would want it.
    pub(crate) wrong: Faults,
    /// What was to be expected at this stage, if that is not what came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unexpected: Option<Outcome>,
}

/// All cells of a stage.
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
