//! Connections that pass no proxy, although others do.

use super::super::traffic::target;
use super::super::{Explanation, Facts, FamilyTraffic, Origin, Target, constants};
use super::{Code, Finding};
use crate::decode::PodRules;
use crate::packet::{Packet, Protocol, Sender};

/// The user and group that Istio always exempts.
const ISTIO: u32 = 1337;

/// Ports of the application that are reached past the proxy.
pub(super) fn inbound(facts: &Facts, family: &FamilyTraffic) -> Vec<Finding> {
    if family.inbound.redirected_port().is_none() {
        return Vec::new();
    }
    let is_direct = |port: &&u16| {
        let of = family.inbound.tcp.iter().find(|ports| contains(&ports.ranges, **port));
        of.is_some_and(|ports| ports.target == Target::Direct)
    };
    let bypassed = facts.ports.iter().filter(is_direct).filter(|port| !contains(&facts.left_out, **port));
    let finding = bypassed.map(|port| {
        let message = format!(
            "connections to port {port} of the application pass no proxy, though those to other ports do, and nothing in \
             the pod's manifest leaves it out"
        );
        Finding::warning(Code::InboundBypass, message)
    });
    finding.collect()
}

/// Processes that are not the proxy and whose connections leave the pod directly.
pub(super) fn outbound(
    rules: &PodRules,
    facts: &Facts,
    explanation: &Explanation,
    family: &FamilyTraffic,
) -> Vec<Finding> {
    let Some(port) = family.outbound.redirected_port() else { return Vec::new() };
    let own = family.address;
    let mut findings = Vec::new();
    for process in &facts.applications {
        let sender = Some(Sender { uid: process.uid, gid: process.gid, mark: 0 });
        let destination = Some(constants::server(own));
        let packet = Packet { protocol: Protocol::Tcp, source: None, destination, port, sender };
        if target(rules, own, &packet) == Target::Direct {
            let message = format!(
                "connections of container {} leave the pod past the proxy, because it runs as UID {} and GID {}, which \
                 rules exempt",
                process.container, process.uid, process.gid
            );
            findings.push(Finding::warning(Code::OutboundBypass, message));
        }
    }
    // Without its containers, nobody knows who the proxy is.
    if facts.proxies.is_empty() {
        return findings;
    }
    let by_istio = |number: u32| number == ISTIO && explanation.origins.contains(&Origin::Istio);
    let expected = |of_proxy: fn(&super::super::Process) -> u32, number: u32| {
        by_istio(number) || facts.proxies.iter().any(|process| of_proxy(process) == number)
    };
    let uids = family.exempt.uids.iter().filter(|uid| !expected(|process| process.uid, **uid));
    let gids = family.exempt.gids.iter().filter(|gid| !expected(|process| process.gid, **gid));
    let words = uids.map(|uid| format!("user {uid}")).chain(gids.map(|gid| format!("group {gid}")));
    findings.extend(words.map(|who| {
        let message = format!(
            "connections of {who} leave the pod past the proxy, though no container of the proxy runs so"
        );
        Finding::warning(Code::OutboundBypass, message)
    }));
    findings
}

fn contains(ranges: &[(u16, u16)], port: u16) -> bool {
    ranges.iter().any(|(first, last)| (*first..=*last).contains(&port))
}
