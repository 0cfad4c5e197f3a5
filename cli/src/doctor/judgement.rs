//! Whether an Istio policy that goes by addresses gets the address that it is about. Pure, and about nothing else: where it is
//! enforced, which field it looks at, and what is done before.
//!
//! | enforced at | field | is the client's when |
//! |---|---|---|
//! | gateway behind a network load balancer | peer, and remote | externalTrafficPolicy is Local |
//! | gateway behind a proxy for HTTP, `numTrustedProxies` set | remote | always |
//! | gateway behind a TCP balancer with PROXY protocol | remote | always |
//! | sidecar behind a gateway | remote, the rightmost X-Forwarded-For | the gateway writes the client's there |
//! | sidecar behind a gateway | peer | never, it is the gateway |
//! | sidecar exposed by a Service | peer | externalTrafficPolicy is Local |
//! | sidecar exposed by a Service | remote | never, the client writes the header |
//!
//! Where it is not the client's, the condition no longer tells clients apart: it is always true, or always false. What that does
//! follows from the action.

#[cfg(test)]
mod tests;

/// How connections come to where the policy is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// At a gateway.
    Gateway(Front),
    /// At a sidecar, through a gateway.
    BehindGateway(Front),
    /// At a sidecar that a Service exposes to the outside.
    Exposed,
}

/// What stands before a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// A condition on the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    /// It holds for addresses that are not in the ranges.
    pub(crate) negated: bool,
    /// Whether the ranges hold the address that is seen in the client's place, where it is known.
    pub(crate) holds_stand_in: bool,
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

/// Whose address a field has at a place. `local`: whether the Service on the way has externalTrafficPolicy Local.
pub(crate) fn seen(place: Place, field: Field, local: bool) -> Seen {
    let if_local = if local { Seen::Client } else { Seen::StandIn };
    match (place, field) {
        (
            Place::Gateway(Front::TrustedProxies | Front::ProxyProtocol)
            | Place::BehindGateway(Front::ProxyProtocol),
            Field::Remote,
        ) => Seen::Client,
        (Place::Gateway(Front::Network) | Place::Exposed, Field::Peer)
        | (Place::Gateway(Front::Network) | Place::BehindGateway(Front::Network), Field::Remote) => if_local,
        (Place::Exposed, Field::Remote) => Seen::Claimed,
        // The gateway appends the proxy before it, and not whom that proxy names.
        (Place::BehindGateway(Front::TrustedProxies), Field::Remote)
        | (Place::Gateway(_) | Place::BehindGateway(_), Field::Peer) => Seen::StandIn,
    }
}

/// What becomes of the answer of a policy with this condition.
pub(crate) fn judge(action: Action, condition: Condition, seen: Seen) -> Verdict {
    let always_true = condition.holds_stand_in != condition.negated;
    match (seen, action, always_true) {
        (Seen::Client, ..) => Verdict::Right,
        // An authorizer that everybody is put to decides by itself.
        (_, Action::Audit, _) | (Seen::StandIn, Action::Custom, true) => Verdict::Misled,
        // One who may choose the address chooses the one that helps.
        (Seen::Claimed, ..)
        | (Seen::StandIn, Action::Allow, true)
        | (Seen::StandIn, Action::Deny | Action::Custom, false) => Verdict::Open,
        (Seen::StandIn, Action::Allow, false) | (Seen::StandIn, Action::Deny, true) => Verdict::Closed,
    }
}
