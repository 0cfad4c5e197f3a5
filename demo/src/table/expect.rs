//! What must be seen at each stage, from what kube-proxy and Istio are known to do; and what of it is wrong.

use std::net::IpAddr;

use serde::Serialize;

use super::{Addresses, Asker, Outcome, SIDECAR, Seen, Stage, Target};

const LET_IN: u16 = 200;
const REFUSED: u16 = 403;

/// What comes of a question at a stage, if everything does what it is known to do.
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

/// Under `Cluster` the first node on the way puts its own address in: the one that it has towards the endpoint.
fn masqueraded(asker: Asker, target: Target, addresses: &Addresses) -> IpAddr {
    match target {
        // A non-ingress node takes the external address for its own.
        Target::ExternalAddress if !asker.is_outside() => addresses.host,
        Target::ExternalAddress | Target::IngressNodePort => addresses.ingress_bridge,
        Target::OtherNodePort => addresses.other_node,
        Target::ClusterIp => addresses.of(asker),
    }
}

/// With the object: at the ingress node the address stays as it comes, other nodes do not serve the outside.
fn preserved(asker: Asker, target: Target, addresses: &Addresses) -> Option<IpAddr> {
    (target != Target::OtherNodePort).then(|| arriving(asker, target, addresses))
}

/// The address that he arrives with, if nobody in between changes it. A pod leaves the cluster as its node.
fn arriving(asker: Asker, target: Target, addresses: &Addresses) -> IpAddr {
    if asker == Asker::Pod && target != Target::ClusterIp { addresses.host } else { addresses.of(asker) }
}

/// What is wrong with an answer in the eyes of whoever wrote a policy by address, whatever the stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(clippy::struct_excessive_bools, reason = "one for each column of the table")]
pub(crate) struct Faults {
    /// The gateway takes him for somebody else.
    pub(crate) gateway: bool,
    /// The application does not see who calls it.
    pub(crate) application: bool,
    /// He is refused or let in against the policy.
    pub(crate) status: bool,
    /// The way in was passed by.
    pub(crate) way: bool,
}

impl Faults {
    pub(crate) fn any(self) -> bool {
        self.gateway || self.application || self.status || self.way
    }
}

/// A non-ingress node that is silent is meant to be.
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
