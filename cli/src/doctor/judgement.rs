//! Whether an Istio policy that goes by addresses gets the address that it is about. Pure, and about nothing else: where it is
//! enforced, which field it looks at, and what is done before.
//!
//! | enforced at | field | is the client's when |
//! |---|---|---|
//! | gateway behind a network load balancer | peer, and remote | the source IP is kept on the way to the gateway |
//! | gateway behind a proxy for HTTP, `numTrustedProxies` set | remote | always |
//! | gateway behind a TCP balancer with PROXY protocol | remote | always |
//! | sidecar behind a gateway | remote, the rightmost X-Forwarded-For | the gateway writes the client's there |
//! | sidecar behind a gateway | peer | never, it is the gateway |
//! | sidecar exposed by a Service | peer | the source IP is kept on the way to the pod |
//! | sidecar exposed by a Service | remote | never, the client writes the header |
//!
//! The source IP is kept when `externalTrafficPolicy` is Local and the load balancer passes packets on ([`Arrival`]). Where the
//! address is not the client's, a condition no longer tells clients apart: it is always true, or always false. The action decides
//! whether that is an outage or a bypass.

#[cfg(test)]
mod tests;

/// Whose source IP a connection has when it reaches a pod of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Arrival {
    Client,
    /// A load balancer's that opens connections of its own.
    Balancer,
    /// A node's: kube-proxy has masqueraded.
    Node,
}

/// How connections come to where the policy is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// At a gateway.
    Gateway(Front),
    /// At a sidecar, through a gateway.
    BehindGateway(Front),
    /// At a sidecar that a Service exposes to the outside.
    Exposed,
}

/// What stands before a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Front {
    /// Something that passes packets on.
    Network,
    /// Proxies that append to X-Forwarded-For, and are trusted.
    TrustedProxies,
    /// A balancer that tells the address by the PROXY protocol.
    ProxyProtocol,
}

/// Which address is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Field {
    /// `ipBlocks`, `source.ip`: the other end of the connection.
    Peer,
    /// `remoteIpBlocks`, `remote.ip`: what X-Forwarded-For or the PROXY protocol says.
    Remote,
}

/// What a policy does with what matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Allow,
    Deny,
    Audit,
    Custom,
}

impl Action {
    /// As a policy has it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "ALLOW",
            Self::Deny => "DENY",
            Self::Audit => "AUDIT",
            Self::Custom => "CUSTOM",
        }
    }
}

/// How many of the addresses that stand in for the client are in the ranges of a condition.
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
    /// It holds for addresses that are not in the ranges.
    pub(crate) negated: bool,
    /// The addresses that are seen in the client's place, as far as they are known.
    pub(crate) stand_ins: Within,
    /// The ranges are the cluster's own: no client outside has an address in them.
    pub(crate) insiders: bool,
}

/// Whose address is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Client,
    /// The one of a node, a gateway or a balancer.
    StandIn,
    /// Whatever the client claims.
    Claimed,
}

/// What becomes of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// It is about the client.
    Right,
    /// It is wrong, and nobody is let in or kept out for it.
    Misled,
    /// Clients are kept out that should get in.
    Closed,
    /// Clients get in that should be kept out.
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
        // The gateway appends the proxy before it, and not whom that proxy names.
        (Place::BehindGateway(Front::TrustedProxies), Field::Remote)
        | (Place::Gateway(_) | Place::BehindGateway(_), Field::Peer) => Seen::StandIn,
    }
}

/// What the data plane makes of one condition, whoever the client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// It depends on the client, as it should.
    Right,
    True,
    False,
    /// It depends on the node that a client happens to come through.
    Varies,
    /// It depends on what the client claims.
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

    /// Whether no client outside is meant to meet it.
    fn excludes_clients(self) -> bool {
        self.insiders && !self.negated
    }
}

/// How conditions that must all hold go wrong together.
enum Wrong {
    /// They never hold, for clients that should meet them.
    NeverHold,
    /// They hold for clients that should not meet them.
    Hold,
    /// Either, depending on the node or on the client's claim.
    Either,
}

fn wrong(conditions: &[Condition], action: Action) -> Option<Wrong> {
    let has = |wanted: Answer| conditions.iter().any(|condition| condition.answer() == wanted);
    if conditions.iter().any(|condition| condition.excludes_clients()) {
        // A client who may choose does not choose to be denied.
        let avoided = action == Action::Deny && has(Answer::Claimed);
        return (!has(Answer::False) && !avoided).then_some(Wrong::Hold);
    }
    let varies = |condition: &Condition| {
        // Where all clients are meant to meet it, only those go wrong who do not.
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

/// What becomes of the answer of a policy, for one set of conditions that must all hold. Where clients may go wrong in both ways,
/// it is told as open.
pub(crate) fn judge(action: Action, conditions: &[Condition]) -> Verdict {
    match (wrong(conditions, action), action) {
        (None, _) => Verdict::Right,
        // An authorizer that everybody is put to decides by itself.
        (Some(_), Action::Audit) | (Some(Wrong::Hold), Action::Custom) => Verdict::Misled,
        (Some(Wrong::Either), _)
        | (Some(Wrong::Hold), Action::Allow)
        | (Some(Wrong::NeverHold), Action::Deny | Action::Custom) => Verdict::Open,
        (Some(Wrong::NeverHold), Action::Allow) | (Some(Wrong::Hold), Action::Deny) => Verdict::Closed,
    }
}
