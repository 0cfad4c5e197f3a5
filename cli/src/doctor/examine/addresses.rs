//! Whether conditions on addresses get the client's, wherever they are written: each is judged on every way on which clients come to it.

use std::collections::{BTreeMap, BTreeSet};

use isp_plan::Key;

use super::stand_ins::{Held, StandIns, addresses_within};
use super::ways::{Enforcer, Way, Whose};
use super::{Scene, remedies};
use crate::doctor::finding::{Code, Finding, Subject};
use crate::doctor::judgement::{
    Action, Arrival, Condition, Field, Place, Seen, Verdict, Within, judge, seen,
};
use crate::doctor::policy::Use;
use crate::text::cut;

/// How many places a line names.
const MOST_PLACES: usize = 3;

/// Something that decides by addresses.
pub(super) struct Policy<'p> {
    pub(super) subject: Subject,
    pub(super) action: Action,
    /// Each is a set of conditions that must all hold.
    pub(super) alternatives: &'p [Vec<Use>],
}

/// What becomes of it on these ways.
pub(super) fn judged(
    scene: &Scene<'_>,
    stand_ins: &StandIns,
    policy: &Policy<'_>,
    ways: &[Way<'_, '_>],
) -> Vec<Finding> {
    let alternatives: Vec<Vec<Judged<'_>>> = policy
        .alternatives
        .iter()
        .map(|uses| uses.iter().map(|used| Judged::of(used, stand_ins)).collect())
        .collect();
    let mut told: BTreeMap<Code, Told<'_>> = BTreeMap::new();
    for way in ways {
        for alternative in &alternatives {
            if let Some((code, wrong)) = verdict(way, policy.action, alternative) {
                told.entry(code).or_default().add(way, &wrong);
            }
        }
    }
    told.into_iter().map(|(code, told)| told.finding(scene, code, policy)).collect()
}

/// A condition, and how its ranges stand to the cluster's own addresses.
struct Judged<'a> {
    used: &'a Use,
    insiders: bool,
    nodes: Held,
}

impl<'a> Judged<'a> {
    fn of(used: &'a Use, stand_ins: &StandIns) -> Self {
        Self { used, insiders: stand_ins.are_all_of(&used.ranges), nodes: stand_ins.held_by(&used.ranges) }
    }

    /// Whether every address that clients of the Service can have is in the ranges.
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
            // A balancer or a proxy, whose address is not known here.
            Within::None
        }
    }
}

/// A condition that does not compare the client's address.
struct Misled<'a> {
    used: &'a Use,
    seen: Seen,
}

/// What becomes of conditions that must all hold, on a way. None: they are right, or not about who comes on it.
fn verdict<'a>(
    way: &Way<'_, '_>,
    action: Action,
    alternative: &[Judged<'a>],
) -> Option<(Code, Vec<Misled<'a>>)> {
    let (mut conditions, mut misled, mut unknown) = (Vec::new(), Vec::new(), false);
    for judged in alternative {
        let Use { field, negated, ref ranges, .. } = *judged.used;
        if field == Field::Remote && way.enforcer == Enforcer::Ztunnel {
            // Istio makes it refuse everybody rather than nobody.
            let refuses = matches!(action, Action::Allow | Action::Deny);
            return refuses
                .then(|| (Code::PolicyClosed, vec![Misled { used: judged.used, seen: Seen::StandIn }]));
        }
        if ranges.is_empty() {
            // Istio does not make a rule of it; that is said apart.
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
                // It is about who in the cluster hands the request over, and the gateway is one of them.
                if (stand_ins == Within::All) == negated {
                    return None;
                }
                continue;
            }
            // In a flat network others may call the pod itself with such an address.
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

/// What is said about a policy, and what it follows from.
#[derive(Default)]
struct Told<'a> {
    lines: Vec<String>,
    /// The Services on the ways.
    services: BTreeSet<&'a Key>,
    /// Those of them that would have to keep the address.
    losing: BTreeSet<&'a Key>,
    path: Vec<String>,
    whose: BTreeSet<Whose>,
    causes: BTreeSet<(Code, Subject)>,
}

impl<'a> Told<'a> {
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
            if self.lines.len() < MOST_PLACES && !self.lines.contains(&line) {
                self.lines.push(line);
            }
        }
        if self.path.is_empty() {
            self.path = way.hops(first.used.field, first.seen);
            let blocks = cut(first.used.texts.clone(), MOST_PLACES, "").join(", ");
            self.path.push(format!("{} {blocks}", first.used.name));
        }
    }

    fn finding(self, scene: &Scene<'_>, code: Code, policy: &Policy<'_>) -> Finding {
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
        for step in remedies::keep_address(scene, &self.losing) {
            finding = finding.do_this(step);
        }
        if self.whose.contains(&Whose::Gateway) || self.whose.contains(&Whose::Proxy) {
            finding = finding.do_this("use remoteIpBlocks (when: remote.ip) for clients of a gateway, and enforce it there where proxies stand before it");
        }
        if self.whose.contains(&Whose::Claimed) {
            finding = finding
                .do_this("use ipBlocks (when: source.ip) where clients reach the pod without a gateway");
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
            "This is a bypass. The policy never sees the client's address, so it does not match the clients that it should deny.",
        ),
        (Code::PolicyOpen, _) => (
            "fails open",
            "This is a bypass. The policy never sees the client's address, so it matches clients that it should not.",
        ),
        (Code::PolicyClosed, _) => (
            "fails closed",
            "This is an outage. The policy never sees the client's address, so it refuses clients that it should let in.",
        ),
        (Code::PolicyMisled, _) => (
            "is misled",
            "The policy never sees the client's address. It lets nobody in and keeps nobody out, but it records or asks about another address.",
        ),
        _ => (
            "may be about somebody else",
            "The peer of a sidecar is the gateway for every request that comes through it. Only callers inside the cluster are told apart by ipBlocks there.",
        ),
    }
}
