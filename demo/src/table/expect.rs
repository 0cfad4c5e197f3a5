//! The expected result at each stage, from the known behaviour of kube-proxy and Istio; and what is
//! wrong with a result.

use std::net::IpAddr;

use serde::Serialize;

use super::{Addresses, Asker, Outcome, SIDECAR, Seen, Stage, Target};

const LET_IN: u16 = 200;
const REFUSED: u16 = 403;

/// The expected result of a request at a stage.
pub(crate) fn expected(stage: Stage, asker: Asker, target: Target, addresses: &Addresses) -> Outcome {
    let entrance = match stage {
        Stage::Before | Stage::Restored => Some(masqueraded(asker, target, addresses)),
        Stage::After => preserved(asker, target, addresses),
    };
    let Some(entrance) = entrance else { return Outcome::Silent("as intended".to_owned()) };
    let through_router =
        (target == Target::ExternalAddress && !asker.is_outside()).then_some(stage == Stage::After);
    Outcome::Seen(match addresses.gateway {
        None => Seen { gateway: None, application: entrance, status: LET_IN, through_router },
        Some(gateway) => Seen {
            gateway: Some(entrance),
            application: if stage == Stage::After { gateway } else { SIDECAR },
            status: if entrance == addresses.client { LET_IN } else { REFUSED },
            through_router,
        },
    })
}

/// With `externalTrafficPolicy: Cluster`, the first node masquerades: it replaces the source IP
/// with its own address towards the endpoint.
fn masqueraded(asker: Asker, target: Target, addresses: &Addresses) -> IpAddr {
    match target {
        // A non-ingress node intercepts traffic to the external IP.
        Target::ExternalAddress if !asker.is_outside() => addresses.host,
        Target::ExternalAddress | Target::IngressNodePort => addresses.ingress_bridge,
        Target::OtherNodePort => addresses.other_node,
        Target::ClusterIp => addresses.of(asker),
    }
}

/// With the object: the ingress node preserves the source IP, other nodes do not serve external
/// traffic.
fn preserved(asker: Asker, target: Target, addresses: &Addresses) -> Option<IpAddr> {
    (target != Target::OtherNodePort).then(|| arriving(asker, target, addresses))
}

/// The source IP on arrival, without SNAT at the ingress. A pod leaves the cluster with its node's
/// IP.
fn arriving(asker: Asker, target: Target, addresses: &Addresses) -> IpAddr {
    if asker == Asker::Pod && target != Target::ClusterIp { addresses.host } else { addresses.of(asker) }
}

/// What is wrong with a result, from the point of view of a policy on source IPs, at any stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(clippy::struct_excessive_bools, reason = "one for each column of the table")]
pub(crate) struct Faults {
    /// The gateway sees another source IP.
    pub(crate) gateway: bool,
    /// The application does not see its real peer.
    pub(crate) application: bool,
    /// The policy admits or rejects the wrong client.
    pub(crate) status: bool,
    /// The request bypassed the ingress node.
    pub(crate) way: bool,
}

impl Faults {
    pub(crate) fn any(self) -> bool {
        self.gateway || self.application || self.status || self.way
    }
}

/// Finds the faults of a result. No answer from a non-ingress node's NodePort is intended.
pub(crate) fn faults(asker: Asker, target: Target, addresses: &Addresses, outcome: &Outcome) -> Faults {
    let arriving = arriving(asker, target, addresses);
    match outcome {
        Outcome::Silent(_) => Faults { status: target != Target::OtherNodePort, ..Faults::default() },
        Outcome::Seen(seen) => {
            let way = seen.through_router == Some(false);
            match (addresses.gateway, seen.gateway) {
                (Some(gateway), seen_there) => {
                    let status = if asker == Asker::Client { LET_IN } else { REFUSED };
                    Faults {
                        gateway: seen_there != Some(arriving),
                        application: seen.application != gateway,
                        status: seen.status != status,
                        way,
                    }
                }
                (None, _) => Faults { application: seen.application != arriving, way, ..Faults::default() },
            }
        }
    }
}
