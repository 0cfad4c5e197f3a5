//! Whether a policy that compares addresses sees the client's. Pure. It depends on the place of
//! enforcement, the field that is compared, and the hops before.
//!
//! | enforced at | field | is the client's when |
//! |---|---|---|
//! | gateway behind a network load balancer | peer, and remote | the Service keeps the source IP |
//! | gateway behind an HTTP proxy, `numTrustedProxies` set | remote | always |
//! | gateway behind a TCP balancer with PROXY protocol | remote | always |
//! | sidecar behind a gateway | remote (rightmost X-Forwarded-For) | the gateway sees the client |
//! | sidecar behind a gateway | peer | never, it is the gateway |
//! | sidecar exposed by a Service | peer | the Service keeps the source IP |
//! | sidecar exposed by a Service | remote | never, the client writes the header |
//!
//! A Service keeps the source IP if `externalTrafficPolicy` is Local and the load balancer forwards
//! packets ([`Arrival`]). Otherwise a condition no longer distinguishes clients: it is always true,
//! or always false. The action decides whether that is an outage or a bypass.

#[cfg(test)]
mod tests;

/// Whose source IP a connection has when it reaches a pod of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Arrival {
    Client,
    /// That of a load balancer that opens its own connections.
    Balancer,
    /// That of a node: kube-proxy applied SNAT.
    Node,
}

/// The place of enforcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// At a gateway.
    Gateway(Front),
    /// At a sidecar, through a gateway.
    BehindGateway(Front),
    /// At a sidecar that a Service exposes to the outside.
    Exposed,
}

/// The kind of hop before a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Front {
    /// A network that forwards packets.
    Network,
    /// Proxies that append to X-Forwarded-For, and are trusted.
    TrustedProxies,
    /// A balancer that sends the PROXY protocol.
    ProxyProtocol,
}

/// The address that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Field {
    /// `ipBlocks`, `source.ip`: the other end of the connection.
    Peer,
    /// `remoteIpBlocks`, `remote.ip`: from X-Forwarded-For or the PROXY protocol.
    Remote,
}

/// The action of a policy on requests that match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Allow,
    Deny,
    Audit,
    Custom,
}

impl Action {
    /// As in the policy.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "ALLOW",
            Self::Deny => "DENY",
            Self::Audit => "AUDIT",
            Self::Custom => "CUSTOM",
        }
    }
}

/// How many of the addresses that replace the client's are in the ranges of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Within {
    All,
    Some,
    None,
}

/// A condition on the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) seen: Seen,
    /// Whether it holds for addresses outside of the ranges.
    pub(crate) negated: bool,
    /// Whether the addresses that replace the client's are in the ranges, as far as known.
    pub(crate) stand_ins: Within,
    /// Whether the ranges are the cluster's own, so that no client outside is in them.
    pub(crate) insiders: bool,
}

/// Whose address is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Client,
    /// That of a node, a gateway or a balancer.
    StandIn,
    /// Any address that the client claims.
    Claimed,
}

/// The verdict on a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// It decides by the client's address.
    Right,
    /// It uses another address, but does not admit or reject by it.
    Misled,
    /// It rejects clients that it should admit.
    Closed,
    /// It admits clients that it should reject.
    Open,
}

/// Whose address a field has at a place.
pub(crate) fn seen(place: Place, field: Field, arrival: Arrival) -> Seen {
    let if_kept = if arrival == Arrival::Client { Seen::Client } else { Seen::StandIn };
    match (place, field) {
        (
            Place::Gateway(Front::TrustedProxies | Front::ProxyProtocol)
            | Place::BehindGateway(Front::ProxyProtocol),
            Field::Remote,
        ) => Seen::Client,
        (Place::Gateway(Front::Network) | Place::Exposed, Field::Peer)
        | (Place::Gateway(Front::Network) | Place::BehindGateway(Front::Network), Field::Remote) => if_kept,
        (Place::Exposed, Field::Remote) => Seen::Claimed,
        // The gateway appends the address of the proxy, not the client that the proxy names.
        (Place::BehindGateway(Front::TrustedProxies), Field::Remote)
        | (Place::Gateway(_) | Place::BehindGateway(_), Field::Peer) => Seen::StandIn,
    }
}

/// The result of one condition in the data plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// It depends on the client, as it should.
    Right,
    True,
    False,
    /// It depends on the node that receives the connection.
    Varies,
    /// It depends on the address that the client claims.
    Claimed,
}

impl Condition {
    fn answer(self) -> Answer {
        match (self.seen, self.stand_ins) {
            // No client outside is in the ranges.
            (Seen::Client, _) if self.insiders && !self.negated => Answer::False,
            (Seen::Client, _) => Answer::Right,
            (Seen::Claimed, _) => Answer::Claimed,
            (Seen::StandIn, Within::Some) => Answer::Varies,
            (Seen::StandIn, within) if (within == Within::All) == self.negated => Answer::False,
            (Seen::StandIn, _) if self.insiders && self.negated => Answer::Right,
            (Seen::StandIn, _) => Answer::True,
        }
    }

    /// Whether it is meant to hold for no client outside.
    fn excludes_clients(self) -> bool {
        self.insiders && !self.negated
    }
}

/// How conditions that must all hold fail together.
enum Wrong {
    /// They do not hold for clients for which they should.
    NeverHold,
    /// They hold for clients for which they should not.
    Hold,
    /// Either, depending on the node or on the client's claim.
    Either,
}

fn wrong(conditions: &[Condition], action: Action) -> Option<Wrong> {
    let has = |wanted: Answer| conditions.iter().any(|condition| condition.answer() == wanted);
    if conditions.iter().any(|condition| condition.excludes_clients()) {
        // A client that can choose its address does not choose to be rejected.
        let avoided = action == Action::Deny && has(Answer::Claimed);
        return (!has(Answer::False) && !avoided).then_some(Wrong::Hold);
    }
    let varies = |condition: &Condition| {
        // If it should hold for all clients, it can only fail by not holding.
        condition.answer() == Answer::Varies && !condition.insiders
    };
    let claimed = |condition: &Condition| {
        condition.answer() == Answer::Claimed && !(condition.insiders && action == Action::Allow)
    };
    if has(Answer::False) {
        Some(Wrong::NeverHold)
    } else if conditions.iter().any(|condition| claimed(condition) || varies(condition)) {
        Some(Wrong::Either)
    } else if has(Answer::Varies) {
        Some(if has(Answer::True) { Wrong::Either } else { Wrong::NeverHold })
    } else {
        has(Answer::True).then_some(Wrong::Hold)
    }
}

/// The verdict for one set of conditions that must all hold. If a policy can fail both ways, the
/// verdict is `Open`.
pub(crate) fn judge(action: Action, conditions: &[Condition]) -> Verdict {
    match (wrong(conditions, action), action) {
        (None, _) => Verdict::Right,
        // An external authorizer that gets every request decides by itself.
        (Some(_), Action::Audit) | (Some(Wrong::Hold), Action::Custom) => Verdict::Misled,
        (Some(Wrong::Either), _)
        | (Some(Wrong::Hold), Action::Allow)
        | (Some(Wrong::NeverHold), Action::Deny | Action::Custom) => Verdict::Open,
        (Some(Wrong::NeverHold), Action::Allow) | (Some(Wrong::Hold), Action::Deny) => Verdict::Closed,
    }
}
