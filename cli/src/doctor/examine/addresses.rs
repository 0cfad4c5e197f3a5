//! Whether policies that compare addresses see the client's. Each is judged on every path on which
//! clients reach it.

use std::collections::{BTreeMap, BTreeSet};

use isp_plan::Key;

use super::stand_ins::{Held, StandIns, addresses_within};
use super::ways::{Enforcer, Way, Whose};
use super::{Scope, remedies};
use crate::doctor::finding::{Code, Finding, Subject};
use crate::doctor::judgement::{
    Action, Arrival, Condition, Field, Place, Seen, Verdict, Within, judge, seen,
};
use crate::doctor::policy::Use;
use crate::text::cut;

/// A line names so many places.
const MAX_PLACES: usize = 3;

/// A policy or list that compares addresses.
pub(super) struct Policy<'p> {
    pub(super) subject: Subject,
    pub(super) action: Action,
    /// Each is a set of conditions that must all hold.
    pub(super) alternatives: &'p [Vec<Use>],
}

/// The findings about a policy on these paths.
pub(super) fn judged(
    scope: &Scope<'_>,
    stand_ins: &StandIns,
    policy: &Policy<'_>,
    ways: &[Way<'_, '_>],
) -> Vec<Finding> {
    let alternatives: Vec<Vec<Judged<'_>>> = policy
        .alternatives
        .iter()
        .map(|uses| uses.iter().map(|used| Judged::of(used, stand_ins)).collect())
        .collect();
    let mut verdicts: BTreeMap<Code, Evidence<'_>> = BTreeMap::new();
    for way in ways {
        for alternative in &alternatives {
            if let Some((code, wrong)) = verdict(way, policy.action, alternative) {
                verdicts.entry(code).or_default().add(way, &wrong);
            }
        }
    }
    verdicts.into_iter().map(|(code, evidence)| evidence.finding(scope, code, policy)).collect()
}

/// A condition, and whether its ranges contain the cluster's own addresses.
struct Judged<'a> {
    used: &'a Use,
    insiders: bool,
    nodes: Held,
}

impl<'a> Judged<'a> {
    fn of(used: &'a Use, stand_ins: &StandIns) -> Self {
        Self { used, insiders: stand_ins.are_all_of(&used.ranges), nodes: stand_ins.held_by(&used.ranges) }
    }

    /// Whether the ranges contain every address that a client of the Service can have.
    fn covers_everybody(&self, way: &Way<'_, '_>) -> bool {
        let families = way.facts.spec.ip_families.as_deref().unwrap_or_default();
        let covers =
            |v4: bool| self.used.ranges.iter().any(|range| range.is_everything() && range.is_v4() == v4);
        match families {
            [] => covers(true),
            families => families.iter().all(|family| covers(family == "IPv4")),
        }
    }

    fn stand_ins(&self, way: &Way<'_, '_>) -> Within {
        let field = self.used.field;
        if field == Field::Peer && matches!(way.place, Place::BehindGateway(_)) {
            addresses_within(&way.addresses, &self.used.ranges)
        } else if way.is_direct(field) && way.arrival == Arrival::Node {
            self.nodes.for_service(way.facts)
        } else {
            // The address of a balancer or a proxy is not known.
            Within::None
        }
    }
}

/// A condition that does not compare the client's address.
struct Misled<'a> {
    used: &'a Use,
    seen: Seen,
}

/// The verdict on conditions that must all hold, on one path. None: they are right, or they do not
/// concern the clients on this path.
fn verdict<'a>(
    way: &Way<'_, '_>,
    action: Action,
    alternative: &[Judged<'a>],
) -> Option<(Code, Vec<Misled<'a>>)> {
    let (mut conditions, mut misled, mut unknown) = (Vec::new(), Vec::new(), false);
    for judged in alternative {
        let Use { field, negated, ref ranges, .. } = *judged.used;
        if field == Field::Remote && way.enforcer == Enforcer::Ztunnel {
            // Istio lets it reject every client rather than admit every client.
            let refuses = matches!(action, Action::Allow | Action::Deny);
            return refuses
                .then(|| (Code::PolicyClosed, vec![Misled { used: judged.used, seen: Seen::StandIn }]));
        }
        if ranges.is_empty() {
            // Istio ignores the rule; another finding says so.
            return None;
        }
        if judged.covers_everybody(way) {
            if negated {
                return None;
            }
            continue;
        }
        let stand_ins = judged.stand_ins(way);
        if field == Field::Peer && matches!(way.place, Place::BehindGateway(_)) {
            if judged.insiders {
                // It is about callers inside the cluster, and the gateway is one of them.
                if (stand_ins == Within::All) == negated {
                    return None;
                }
                continue;
            }
            // In a flat network, others may call the pod directly from such an address.
            unknown |= ranges.iter().any(|range| range.is_private());
        }
        let seen = seen(way.place, field, way.arrival);
        if seen != Seen::Client {
            misled.push(Misled { used: judged.used, seen });
        }
        conditions.push(Condition { seen, negated, stand_ins, insiders: judged.insiders });
    }
    let code = match judge(action, &conditions) {
        Verdict::Right => return None,
        _ if unknown => Code::PolicyUnknown,
        Verdict::Misled => Code::PolicyMisled,
        Verdict::Closed => Code::PolicyClosed,
        Verdict::Open => Code::PolicyOpen,
    };
    Some((code, misled))
}

/// The evidence for a finding about a policy, and its causes.
#[derive(Default)]
struct Evidence<'a> {
    lines: Vec<String>,
    /// The Services on the paths.
    services: BTreeSet<&'a Key>,
    /// Those of them that lose the source IP.
    losing: BTreeSet<&'a Key>,
    path: Vec<String>,
    whose: BTreeSet<Whose>,
    causes: BTreeSet<(Code, Subject)>,
}

impl<'a> Evidence<'a> {
    fn add(&mut self, way: &Way<'_, 'a>, wrong: &[Misled<'_>]) {
        let Some(first) = wrong.first() else { return };
        self.services.insert(way.service);
        self.causes.extend(way.cause());
        for Misled { used, seen } in wrong {
            let whose = way.whose(*seen, used.field);
            self.whose.insert(whose);
            if *seen == Seen::StandIn && way.is_direct(used.field) {
                self.losing.insert(way.service);
            }
            let line = format!("{} sees {whose}, {}", used.name, way.through());
            if self.lines.len() < MAX_PLACES && !self.lines.contains(&line) {
                self.lines.push(line);
            }
        }
        if self.path.is_empty() {
            self.path = way.hops(first.used.field, first.seen);
            let blocks = cut(first.used.texts.clone(), MAX_PLACES, "").join(", ");
            self.path.push(format!("{} {blocks}", first.used.name));
        }
    }

    fn finding(self, scope: &Scope<'_>, code: Code, policy: &Policy<'_>) -> Finding {
        let Policy { subject, action, .. } = policy;
        let (what, reason) = reason(code, *action);
        let action = action.as_str();
        let more = self.services.len().saturating_sub(self.lines.len());
        let mut places = self.lines.join("; ");
        if more > 0 {
            places = format!("{places}; and through {more} more Services");
        }
        let line = format!("{action} {what}: {places}");
        let mut path = self.path;
        if let Some(last) = path.last_mut() {
            *last = format!("{subject}: {action} by {last} {what}");
        }
        let mut finding = Finding::new(code, subject.clone(), line).because(reason).along(path);
        for step in remedies::keep_address(scope, &self.losing) {
            finding = finding.do_this(step);
        }
        if self.whose.contains(&Whose::Gateway) || self.whose.contains(&Whose::Proxy) {
            finding = finding.do_this("use remoteIpBlocks (when: remote.ip) for clients of a gateway; behind further proxies, enforce it at the gateway");
        }
        if self.whose.contains(&Whose::Claimed) {
            finding =
                finding.do_this("use ipBlocks (when: source.ip) if clients reach the pod without a gateway");
        }
        for (code, subject) in self.causes {
            finding = finding.following(code, subject);
        }
        finding
    }
}

fn reason(code: Code, action: Action) -> (&'static str, &'static str) {
    match (code, action) {
        (Code::PolicyOpen, Action::Deny) => (
            "fails open",
            "This is a bypass. The policy never sees the client's address, so it does not match the clients that it should reject.",
        ),
        (Code::PolicyOpen, _) => (
            "fails open",
            "This is a bypass. The policy never sees the client's address, so it matches clients that it should not.",
        ),
        (Code::PolicyClosed, _) => (
            "fails closed",
            "This is an outage. The policy never sees the client's address, so it rejects clients that it should admit.",
        ),
        (Code::PolicyMisled, _) => (
            "is misled",
            "The policy never sees the client's address. It does not admit or reject by it, but records or forwards another address.",
        ),
        _ => (
            "may concern other callers",
            "Behind a gateway, the peer of a sidecar is the gateway for every request. There ipBlocks can only distinguish callers inside the cluster.",
        ),
    }
}
