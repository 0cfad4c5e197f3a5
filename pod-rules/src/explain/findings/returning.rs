//! Packets that come back: the proxy's own, which must not, and the application's answers, which
//! must.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::super::traffic::target;
use super::super::{Explanation, Facts, FamilyTraffic, Mode, Origin, Target, constants};
use super::{Code, Finding};
use crate::decode::PodRules;
use crate::packet::{Packet, Protocol, Sender};
use crate::trace::{By, Live, Outcome, follow};

/// The mark that Istio's proxy sets on connections to the application in mode TPROXY.
const ISTIO_MARK: u32 = 1337;

/// The proxy, as rules recognize it.
struct Identity {
    words: String,
    sender: Sender,
}

/// The proxy's containers, else whoever is exempt, else any process. The second value says whether
/// all of them are the proxy; otherwise one of them is.
fn identities(rules: &PodRules, facts: &Facts, family: &FamilyTraffic) -> (Vec<Identity>, bool) {
    let ordinary = constants::ordinary(rules, family.address);
    let known = facts.proxies.iter().map(|process| Identity {
        words: format!("container {} (UID {}, GID {})", process.container, process.uid, process.gid),
        sender: Sender { uid: process.uid, gid: process.gid, mark: 0 },
    });
    let known: Vec<Identity> = known.collect();
    if !known.is_empty() {
        return (known, true);
    }
    let exempt = &family.exempt;
    let uids = exempt.uids.iter().map(|uid| (format!("UID {uid}"), Sender { uid: *uid, ..ordinary }));
    let gids = exempt.gids.iter().map(|gid| (format!("GID {gid}"), Sender { gid: *gid, ..ordinary }));
    let marks =
        exempt.marks.iter().map(|mark| (format!("mark {mark:#x}"), Sender { mark: *mark, ..ordinary }));
    let all = uids.chain(gids).chain(marks);
    let mut found: Vec<Identity> =
        all.map(|(words, sender)| Identity { words: format!("the proxy ({words})"), sender }).collect();
    if found.is_empty() && exempt.control_groups.is_empty() {
        let words = "the proxy, which no rule tells from other processes,".to_owned();
        found.push(Identity { words, sender: ordinary });
    }
    (found, false)
}

/// The proxy's own connections that come back to it.
pub(super) fn loops(
    rules: &PodRules,
    facts: &Facts,
    explanation: &Explanation,
    family: &FamilyTraffic,
) -> Vec<Finding> {
    let (identities, all_are_proxies) = identities(rules, facts, family);
    let judge = |comes_back: &dyn Fn(&Identity) -> Option<String>| {
        let found: Vec<String> = identities.iter().filter_map(comes_back).collect();
        let is_loop = all_are_proxies || found.len() == identities.len();
        found.into_iter().filter(|_| is_loop).map(|message| Finding::error(Code::Loop, message)).collect()
    };
    let mut findings: Vec<Finding> = judge(&|identity| to_others(rules, family, identity));
    findings.extend::<Vec<Finding>>(judge(&|identity| to_itself(rules, explanation, family, identity)));
    findings
}

/// Connections of the proxy to others that come back.
fn to_others(rules: &PodRules, family: &FamilyTraffic, identity: &Identity) -> Option<String> {
    let own = family.address;
    let port = family.outbound.redirected_port()?;
    let (destination, sender) = (Some(constants::server(own)), Some(identity.sender));
    let packet = Packet { protocol: Protocol::Tcp, source: None, destination, port, sender };
    let Target::Proxy { port, .. } = target(rules, own, &packet) else { return None };
    Some(format!("loop: connections of {} to others come back to its port {port}", identity.words))
}

/// Connections of the proxy to the application that come back.
fn to_itself(
    rules: &PodRules,
    explanation: &Explanation,
    family: &FamilyTraffic,
    identity: &Identity,
) -> Option<String> {
    let own = family.address;
    let port = family.inbound.redirected_port()?;
    let mut first = None;
    for (source, mark) in sources(explanation, own) {
        let sender = Sender { mark, ..identity.sender };
        let packet = to_application(own, source, port, sender);
        let Target::Proxy { port, .. } = target(rules, own, &packet) else { return None };
        first.get_or_insert((source, port));
    }
    let (source, port) = first?;
    let words = &identity.words;
    Some(format!(
        "loop: connections of {words} to the application, with source {source}, come back to its port {port}"
    ))
}

/// The sources with which the proxy may connect to the application, and the marks of its sockets.
/// It is a loop only if none of them works: which one a proxy uses is its own choice, except
/// Istio's.
fn sources(explanation: &Explanation, own: IpAddr) -> Vec<(IpAddr, u32)> {
    let passthrough: IpAddr = match own {
        IpAddr::V4(_) => Ipv4Addr::new(127, 0, 0, 6).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0, 0, 0, 0, 0, 0, 0, 6).into(),
    };
    match (explanation.origins.contains(&Origin::Istio), explanation.mode) {
        (true, Mode::Tproxy) => vec![(constants::client(own), ISTIO_MARK)],
        (true, _) => vec![(passthrough, 0)],
        (false, _) => vec![(constants::client(own), 0), (own, 0)],
    }
}

fn to_application(own: IpAddr, source: IpAddr, port: u16, sender: Sender) -> Packet {
    Packet {
        protocol: Protocol::Tcp,
        source: Some(source),
        destination: Some(own),
        port,
        sender: Some(sender),
    }
}

/// In mode TPROXY the proxy connects with the client's address, so the application answers the
/// client. A mark of the connection must bring the answer back to the proxy.
pub(super) fn lost_answers(
    rules: &PodRules,
    facts: &Facts,
    explanation: &Explanation,
    family: &FamilyTraffic,
) -> Option<Finding> {
    let own = family.address;
    let port = family.inbound.redirected_port().filter(|_| family.inbound_mode == Mode::Tproxy)?;
    let proxy = identities(rules, facts, family).0.into_iter().next()?.sender;
    let (client, mark) = *sources(explanation, own).first()?;
    let packet = to_application(own, client, port, Sender { mark, ..proxy });
    let first = Live::first(&packet, own);
    let there = follow(rules, own, &first);
    if !matches!(there.outcome, Outcome::Delivered { by: By::Itself, .. }) {
        // A loop is a finding of its own.
        return None;
    }
    let application = constants::ordinary(rules, own);
    let back = follow(rules, own, &Live::answer(&first, there.connection_mark, application));
    let leaves = matches!(back.outcome, Outcome::Leaves { .. } | Outcome::NoRoute | Outcome::Dropped);
    leaves.then(|| {
        let message = format!(
            "the application's answers to {client} leave the pod instead of returning to the proxy, so connections \
             hang: a rule must mark them, and `ip rule` and a local route must lead that mark to the loopback interface"
        );
        Finding::error(Code::AnswersLost, message)
    })
}
