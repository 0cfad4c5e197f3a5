//! A path in words: whose address is visible at each hop.

use std::fmt;

use super::{Enforcer, Way};
use crate::doctor::judgement::{Arrival, Field, Front, Place, Seen};

/// Whose address a policy compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::doctor::examine) enum Whose {
    Client,
    /// Any address that the client writes into a header.
    Claimed,
    Gateway,
    Node,
    Balancer,
    /// That of a proxy before the gateway.
    Proxy,
    /// None: the enforcer does not know the field.
    Nothing,
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "the client's address",
            Self::Claimed => "any address that the client claims",
            Self::Gateway => "the gateway's address",
            Self::Node => "a node's address",
            Self::Balancer => "the load balancer's address",
            Self::Proxy => "the address of the proxy before the gateway",
            Self::Nothing => "nothing, because ztunnel supports only ipBlocks",
        })
    }
}

impl Way<'_, '_> {
    pub(in crate::doctor::examine) fn whose(&self, seen: Seen, field: Field) -> Whose {
        match (seen, self.place) {
            _ if field == Field::Remote && self.enforcer == Enforcer::Ztunnel => Whose::Nothing,
            (Seen::Client, _) => Whose::Client,
            (Seen::Claimed, _) => Whose::Claimed,
            (Seen::StandIn, Place::BehindGateway(_)) if field == Field::Peer => Whose::Gateway,
            (Seen::StandIn, _) if self.is_direct(field) && self.arrival == Arrival::Node => Whose::Node,
            (Seen::StandIn, _) if self.is_direct(field) => Whose::Balancer,
            (Seen::StandIn, _) => Whose::Proxy,
        }
    }

    /// The place, and the Service that leads there.
    pub(in crate::doctor::examine) fn through(&self) -> String {
        let entry = self.name();
        let place = match (self.place, self.enforcer) {
            (Place::BehindGateway(_), Enforcer::Ztunnel) => format!("at ztunnel behind the {entry}"),
            (Place::BehindGateway(_), Enforcer::Waypoint) => format!("at the waypoint behind the {entry}"),
            (Place::BehindGateway(_), _) => format!("at the sidecars behind the {entry}"),
            _ => format!("at the {entry}"),
        };
        format!("{place} of Service {} (externalTrafficPolicy {})", self.service, self.facts.policy())
    }

    /// The kind of pods behind the Service.
    fn name(&self) -> &'static str {
        match self.entry.kind {
            Enforcer::Gateway | Enforcer::Waypoint => "gateway",
            Enforcer::Sidecar => "sidecar",
            Enforcer::Ztunnel => "ztunnel",
            Enforcer::Controller => "ingress controller",
            Enforcer::Pod => "pods",
        }
    }

    /// The hops. `seen`: whose address is compared at the end.
    pub(in crate::doctor::examine) fn hops(&self, field: Field, seen: Seen) -> Vec<String> {
        let type_ = self.facts.spec.type_.as_deref().unwrap_or("ClusterIP");
        let policy = self.facts.policy();
        let (kept, peer) = match self.arrival {
            Arrival::Client => ("the source IP stays the client's", "the client"),
            Arrival::Balancer => (
                "the load balancer opens its own connections (ipMode Proxy), so the source IP is the balancer's",
                "the load balancer",
            ),
            Arrival::Node => {
                ("the node that receives the connection replaces the source IP by its own (SNAT)", "a node")
            }
        };
        let mut hops =
            vec![format!("Service {}, {type_}, externalTrafficPolicy {policy}: {kept}", self.service)];
        let pod = self.pods.first().map(|(key, _)| key.to_string()).unwrap_or_default();
        let front = match self.place {
            Place::Gateway(front) | Place::BehindGateway(front) => Some(front),
            Place::Exposed => None,
        };
        let (name, does) = (
            self.name(),
            match front {
                None if self.entry.kind == Enforcer::Sidecar => {
                    format!("its peer is {peer}; X-Forwarded-For is as the client wrote it")
                }
                None => format!("its peer is {peer}"),
                Some(Front::Network) => format!("its peer is {peer}, and it appends that to X-Forwarded-For"),
                Some(Front::TrustedProxies) => {
                    format!("it takes the client from X-Forwarded-For, and appends its own peer ({peer})")
                }
                Some(Front::ProxyProtocol) => {
                    format!("it takes the client from the PROXY protocol; its peer is {peer}")
                }
            },
        );
        hops.push(match self.entry.kind {
            Enforcer::Pod => format!("pod {pod}: {does}"),
            Enforcer::Sidecar | Enforcer::Ztunnel => format!("{name} of pod {pod}: {does}"),
            _ => format!("{name} pod {pod}: {does}"),
        });
        if matches!(self.place, Place::BehindGateway(_)) {
            let proxy = match self.enforcer {
                Enforcer::Ztunnel => "ztunnel",
                Enforcer::Waypoint => "waypoint",
                _ => "sidecar",
            };
            hops.push(match field {
                Field::Peer => format!("{proxy} behind it: its peer is the gateway"),
                Field::Remote if self.enforcer == Enforcer::Ztunnel => {
                    format!("{proxy} behind it: it does not read X-Forwarded-For")
                }
                Field::Remote => format!(
                    "{proxy} behind it: it takes the rightmost address of X-Forwarded-For, which is {}",
                    self.whose(seen, field)
                ),
            });
        }
        hops
    }
}
