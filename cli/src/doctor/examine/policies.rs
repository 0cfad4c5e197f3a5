//! Istio's policies that go by addresses, judged by the way on which clients come to them through the Services that are examined.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use isp_plan::Key;

use super::{Scene, gateways};
use crate::doctor::cluster::{Cluster, Pod};
use crate::doctor::finding::{Code, Finding, Subject};
use crate::doctor::judgement::{Action, Condition, Field, Front, Place, Seen, Verdict, judge, seen};
use crate::doctor::mesh::{AuthorizationPolicy, Mesh, Reach, TargetRef};
use crate::doctor::ranges::{Range, readable};

pub(super) fn check(scene: &Scene<'_>, found: &mut Vec<Finding>) {
    if scene.services.is_empty() {
        return;
    }
    let ways = Ways::of(scene);
    for (key, policy) in &scene.cluster.policies {
        let uses = uses(policy);
        if uses.is_empty() {
            continue;
        }
        let mut told: BTreeMap<Code, Told> = BTreeMap::new();
        for way in ways.to(scene.cluster, key, policy) {
            for used in &uses {
                if let Some((code, line)) = way.verdict(scene.cluster, action(policy), used) {
                    let told = told.entry(code).or_default();
                    told.lines.insert(line);
                    told.causes.extend(way.cause());
                }
            }
        }
        found.extend(told.into_iter().map(|(code, told)| finding(code, key, policy, told)));
    }
}

/// What is said about a policy, and what it follows from.
#[derive(Default)]
struct Told {
    lines: BTreeSet<String>,
    causes: BTreeSet<(Code, Subject)>,
}

fn action(policy: &AuthorizationPolicy) -> Action {
    match policy.action.as_deref() {
        Some("DENY") => Action::Deny,
        Some("AUDIT") => Action::Audit,
        Some("CUSTOM") => Action::Custom,
        _ => Action::Allow,
    }
}

/// A condition on addresses, as it is written.
struct Use {
    /// As it is called there.
    name: &'static str,
    field: Field,
    negated: bool,
    ranges: Vec<Range>,
}

fn uses(policy: &AuthorizationPolicy) -> Vec<Use> {
    let mut found = Vec::new();
    let mut take = |name, field, negated, texts: &Vec<String>| {
        if !texts.is_empty() {
            found.push(Use { name, field, negated, ranges: readable(texts) });
        }
    };
    for rule in &policy.rules {
        for from in &rule.from {
            let source = &from.source;
            take("ipBlocks", Field::Peer, false, &source.ip_blocks);
            take("notIpBlocks", Field::Peer, true, &source.not_ip_blocks);
            take("remoteIpBlocks", Field::Remote, false, &source.remote_ip_blocks);
            take("notRemoteIpBlocks", Field::Remote, true, &source.not_remote_ip_blocks);
        }
        for when in &rule.when {
            let (name, field) = match when.key.as_str() {
                "source.ip" => ("source.ip", Field::Peer),
                "remote.ip" => ("remote.ip", Field::Remote),
                _ => continue,
            };
            take(name, field, false, &when.values);
            take(name, field, true, &when.not_values);
        }
    }
    found
}

/// A way in, through one Service.
#[derive(Clone)]
struct Way<'a> {
    service: &'a Key,
    place: Place,
    local: bool,
    /// The addresses of the gateway on it.
    gateway: &'a [IpAddr],
}

struct Ways<'a> {
    /// Those that end at a gateway, by its pod.
    gateways: Vec<(&'a Key, Way<'a>)>,
    /// Those that end at a sidecar, by its pod.
    exposed: Vec<(&'a Key, Way<'a>)>,
}

impl<'a> Ways<'a> {
    fn of(scene: &Scene<'a>) -> Self {
        let mut ways = Self { gateways: Vec::new(), exposed: Vec::new() };
        for (service, facts, _) in scene.services().filter(|(_, service, _)| service.facts.exposed) {
            let local = facts.is_local();
            let pods: Vec<(&'a Key, &'a Pod)> = scene.cluster.pods_of(service).collect();
            for (key, pod) in pods {
                let gateway = pod.addresses.as_slice();
                if pod.gateway {
                    let place = Place::Gateway(gateways::front(scene.cluster, key, pod));
                    ways.gateways.push((key, Way { service, place, local, gateway }));
                } else if pod.sidecar.is_some() {
                    ways.exposed.push((key, Way { service, place: Place::Exposed, local, gateway }));
                }
            }
        }
        ways
    }

    /// The ways to where a policy is enforced.
    fn to(&self, cluster: &'a Cluster, key: &Key, policy: &AuthorizationPolicy) -> Vec<Way<'a>> {
        let mesh = Mesh::default_one(cluster);
        let targets: Vec<&TargetRef> = policy.target_refs.iter().chain(&policy.target_ref).collect();
        let root = mesh.root_namespace();
        let reach = Reach { namespace: &key.namespace, root, selector: policy.selector.as_ref(), targets };
        let meets = |pod: &Key| cluster.pods.get(pod).is_some_and(|facts| reach.meets(&pod.namespace, facts));
        let direct = self.gateways.iter().chain(&self.exposed).filter(|(pod, _)| meets(pod));
        let mut ways: Vec<Way<'a>> = direct.map(|(_, way)| way.clone()).collect();
        let behind = cluster.pods.iter().any(|(pod, facts)| {
            facts.sidecar.is_some() && meets(pod) && !self.exposed.iter().any(|(exposed, _)| *exposed == pod)
        });
        if behind {
            ways.extend(self.gateways.iter().filter_map(|(_, way)| match way.place {
                Place::Gateway(front) => Some(Way { place: Place::BehindGateway(front), ..way.clone() }),
                _ => None,
            }));
        }
        ways
    }
}

impl Way<'_> {
    fn verdict(&self, cluster: &Cluster, action: Action, used: &Use) -> Option<(Code, String)> {
        let at_sidecar = !matches!(self.place, Place::Gateway(_));
        if at_sidecar && used.field == Field::Peer && is_of_cluster(cluster, &used.ranges) {
            // It is about callers inside the cluster, whose addresses nobody changes.
            return None;
        }
        let seen = seen(self.place, used.field, self.local);
        let stand_ins = self.stand_ins(cluster, used.field);
        let holds = |address: &IpAddr| used.ranges.iter().any(|range| range.holds((*address).into()));
        let condition = Condition {
            negated: used.negated,
            holds_stand_in: !stand_ins.is_empty() && stand_ins.iter().all(holds),
        };
        let code = match judge(action, condition, seen) {
            Verdict::Right => return None,
            // Who comes through the gateway may not be whom the policy is about.
            _ if used.field == Field::Peer && matches!(self.place, Place::BehindGateway(_)) => {
                Code::PolicyUnknown
            }
            Verdict::Misled => Code::PolicyMisled,
            Verdict::Closed => Code::PolicyClosed,
            Verdict::Open => Code::PolicyOpen,
        };
        Some((code, format!("{} is {}, {}", used.name, self.whose(seen, used.field), self.through())))
    }

    /// The setting of the gateway on it that puts somebody in the client's place.
    fn cause(&self) -> Option<(Code, Subject)> {
        let (Place::Gateway(front) | Place::BehindGateway(front)) = self.place else { return None };
        let code = match front {
            Front::Network => return None,
            Front::TrustedProxies => Code::TrustedProxies,
            Front::ProxyProtocol => Code::ProxyProtocol,
        };
        Some((code, Subject::new("Service", self.service)))
    }

    /// Who is seen in the client's place.
    fn stand_ins(&self, cluster: &Cluster, field: Field) -> Vec<IpAddr> {
        match (self.place, field) {
            (Place::BehindGateway(_), Field::Peer) => self.gateway.to_vec(),
            (Place::Gateway(Front::Network) | Place::BehindGateway(Front::Network) | Place::Exposed, _) => {
                cluster.nodes.values().flat_map(|node| node.addresses.clone()).collect()
            }
            _ => Vec::new(),
        }
    }

    fn whose(&self, seen: Seen, field: Field) -> &'static str {
        match (seen, self.place, field) {
            (Seen::Client, ..) => "the client's",
            (Seen::Claimed, ..) => "what the client claims",
            (Seen::StandIn, Place::BehindGateway(_), Field::Peer) => "the gateway's",
            (
                Seen::StandIn,
                Place::Gateway(Front::Network) | Place::BehindGateway(Front::Network) | Place::Exposed,
                _,
            ) => "a node's",
            (Seen::StandIn, ..) => "that of the proxy before the gateway",
        }
    }

    fn through(&self) -> String {
        let policy = if self.local { "Local" } else { "Cluster" };
        let place = match self.place {
            Place::Gateway(_) => "at the gateway",
            Place::BehindGateway(_) => "at sidecars behind the gateway",
            Place::Exposed => "at the sidecar",
        };
        format!("{place} of Service {} (externalTrafficPolicy {policy})", self.service)
    }
}

/// Whether only pods and nodes of the cluster are meant.
fn is_of_cluster(cluster: &Cluster, ranges: &[Range]) -> bool {
    let nodes = || cluster.nodes.values();
    let own = |range: &Range| {
        nodes().flat_map(|node| &node.pod_ranges).any(|pods| pods.holds(*range))
            || nodes().flat_map(|node| &node.addresses).any(|address| Range::from(*address).holds(*range))
    };
    !ranges.is_empty() && ranges.iter().all(own)
}

fn finding(code: Code, key: &Key, policy: &AuthorizationPolicy, told: Told) -> Finding {
    let lines: Vec<String> = told.lines.into_iter().collect();
    let action = policy.action.as_deref().unwrap_or("ALLOW");
    let (what, reason) = match code {
        Code::PolicyOpen => (
            "wrong and open",
            "It cannot tell clients apart, and its answer is the same for all: clients get in that it means to keep out.",
        ),
        Code::PolicyClosed => (
            "wrong and closed",
            "It cannot tell clients apart, and its answer is the same for all: clients are kept out that it means to let in.",
        ),
        Code::PolicyMisled => (
            "misled",
            "It does not see the client. Nobody is let in or kept out for it, but what it records or asks about is somebody else.",
        ),
        _ => (
            "about somebody else",
            "At a sidecar the other end of the connection is the gateway for whatever comes through it. That is right for callers inside the cluster only.",
        ),
    };
    let mut finding = Finding::new(
        code,
        Subject::new("AuthorizationPolicy", key),
        format!("{action}, {what}: {}", lines.join("; ")),
    )
    .because(reason);
    if lines.iter().any(|line| line.contains("a node's")) {
        finding = finding.do_this("the Service needs externalTrafficPolicy Local: name it in an IngressSourcePreserve, or mend what keeps that one from setting it");
    }
    if lines.iter().any(|line| line.contains("the gateway's") || line.contains("proxy before the gateway")) {
        finding = finding.do_this("use remoteIpBlocks (when: remote.ip) for clients of a gateway, and enforce it there where proxies stand before it");
    }
    if lines.iter().any(|line| line.contains("client claims")) {
        finding =
            finding.do_this("use ipBlocks (when: source.ip) where clients reach the pod without a gateway");
    }
    for (code, subject) in told.causes {
        finding = finding.following(code, subject);
    }
    finding
}
