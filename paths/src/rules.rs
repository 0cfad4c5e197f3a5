//! The rules of one node for one packet: those of the agent of mode Beside, then kube-proxy's.
//!
//! Only Services that the packet may concern are compiled, so a trace costs little in a cluster
//! with thousands of them.

mod words;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use isp_dataplane::choose::choose;
use isp_dataplane::compile::compile;
use isp_dataplane::model::{
    LocalPods, Node as NodeModel, Service as ServiceModel, ServiceName, Target, TrafficPolicy,
};
use isp_dataplane::nft::{Family, InterfacePattern, Name, Protocol};
use isp_dataplane::plane::Plane;
use isp_dataplane::rules::Settings;
use isp_dataplane::ruleset::Ruleset;
use isp_dataplane::trace::{Outcome, Packet, Story, trace};
use isp_plan::Key;

use self::words::Facts;
use crate::address::Address;
use crate::cluster::{Cluster, Service};
use crate::kube_proxy::ProxyMode;
use crate::path::Actor;
use crate::serving::{Served, by_agent, by_kube_proxy};

/// Interfaces that packets from other machines may come in by; one that no pattern of pods matches
/// is used.
const OUTSIDE: [&str; 3] = ["eth0", "ens0", "net0"];

/// A packet at a node.
#[derive(Clone, Debug)]
pub(crate) struct Arrived {
    pub(crate) source: Address,
    pub(crate) destination: SocketAddr,
    pub(crate) protocol: Protocol,
    pub(crate) from: From,
}

/// Where a packet at a node comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// A pod of the node.
    Pod,
    /// The node itself.
    Host,
    /// Another machine.
    Elsewhere,
}

/// What the rules of a node do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) actor: Actor,
    pub(crate) reason: String,
    pub(crate) rules: Vec<String>,
    pub(crate) end: End,
}

/// How the rules of a node end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum End {
    Redirected { to: Target, masqueraded: bool },
    Refused,
    Dropped,
    Unclear,
}

/// A Service that a packet may concern.
type Concerned<'a> = (&'a Key, &'a Service);

/// Follows a packet through the rules of a node. Empty: no rule concerns it.
pub(crate) fn effects(cluster: &Cluster, node: &str, packet: &Arrived) -> Vec<Effect> {
    let Some(facts) = cluster.nodes().get(node) else { return Vec::new() };
    let (address, port) = (packet.destination.ip(), packet.destination.port());
    let mut concerned: BTreeMap<&Key, &Service> = cluster.services_at(address).collect();
    if facts.has(address) {
        concerned.extend(cluster.services_of_port(packet.protocol, port));
    }
    let settings = cluster.kube_proxy().cloned().unwrap_or_default();
    let of_agent = concerned.iter().filter_map(|(key, service)| {
        by_agent(cluster, node, key, service).map(|seen| ((*key, *service), seen))
    });
    let mut agent = facts.model.clone();
    // The rules ask the kernel which addresses are the node's: the bridge is one of them.
    agent.addresses.extend(facts.bridges());
    let found = follow(cluster, Actor::Agent, &agent, of_agent.collect(), packet, None);
    if !found.is_empty() {
        return found;
    }
    let of_kube_proxy = concerned
        .iter()
        .map(|(key, service)| ((*key, *service), by_kube_proxy(cluster, node, service)))
        .collect();
    follow(cluster, Actor::KubeProxy, &settings.node(facts), of_kube_proxy, packet, Some(settings.mode))
}

/// Why no rule of a node concerns a packet to an address of a Service.
pub(crate) fn why_not(cluster: &Cluster, node: &str, destination: SocketAddr, protocol: Protocol) -> String {
    let at = || cluster.services_at(destination.ip());
    let mut services = at().chain(cluster.services_of_port(protocol, destination.port()));
    let notes = services.find_map(|(key, service)| {
        let by_agent = by_agent(cluster, node, key, service).and_then(|seen| seen.note);
        by_agent.or_else(|| by_kube_proxy(cluster, node, service).note)
    });
    let lacks_port = || {
        let has_port = |(_, service): (_, &Service)| service.has_port(protocol, destination.port());
        let (key, _) = at().next().filter(|_| !at().any(has_port))?;
        Some(format!("Service {key} does not have this port"))
    };
    notes.or_else(lacks_port).map_or_else(String::new, |note| format!(": {note}"))
}

fn follow(
    cluster: &Cluster,
    actor: Actor,
    node: &NodeModel,
    services: Vec<(Concerned<'_>, Served)>,
    packet: &Arrived,
    mode: Option<ProxyMode>,
) -> Vec<Effect> {
    let family = Family::of(packet.destination.ip());
    let mut plane = Plane::new(
        Settings {
            table: Name::constant("ingress-source-preserve"),
            family,
            ahead: 5,
            remembered_clients: 1,
        },
        node.clone(),
    );
    let mut facts = Facts::new(actor, packet, node);
    let mut compiled = Vec::new();
    for ((key, service), Served { view, note }) in services {
        let Some(mut model) = cluster.with_endpoints(key) else { continue };
        if mode == Some(ProxyMode::Iptables) && !has_endpoints(&model, node, packet) {
            // In this mode kube-proxy refuses everybody then, and compares no source ranges.
            model.source_ranges.clear();
        }
        facts.consider(key, service, &model, view, note);
        if let Some(plan) = compile(&model, node, view, family) {
            let name = ServiceName { namespace: key.namespace.clone(), name: key.name.clone() };
            compiled.push((Arc::new(name), plan));
        }
    }
    if compiled.is_empty() {
        return Vec::new();
    }
    plane.begin(compiled);
    let Ok(ruleset) = Ruleset::new(plane.table(), plane.elements()) else {
        return vec![unclear(actor, "the rules contradict each other")];
    };
    let traced = Packet {
        source: packet.source.address,
        destination: packet.destination.ip(),
        protocol: packet.protocol,
        port: packet.destination.port(),
        interface: interface(packet.from, &node.local_pods),
    };
    match trace(&ruleset, &node.addresses, &traced) {
        Err(problem) => vec![unclear(actor, &problem.to_string())],
        Ok(stories) => stories.iter().filter_map(|story| effect(&facts, story, &ruleset, mode)).collect(),
    }
}

/// Whether the Service's port that the packet is for has an endpoint on any node.
fn has_endpoints(service: &ServiceModel, node: &NodeModel, packet: &Arrived) -> bool {
    let (protocol, port) = (packet.protocol, packet.destination.port());
    let mut ports = service.ports.iter().filter(|each| each.protocol == protocol && each.port == port);
    ports.any(|each| {
        let chosen = choose(&each.endpoints, node, Family::of(packet.destination.ip()));
        !chosen.cluster.is_empty() || !chosen.local.is_empty()
    })
}

fn unclear(actor: Actor, reason: &str) -> Effect {
    Effect { actor, reason: reason.to_owned(), rules: Vec::new(), end: End::Unclear }
}

/// The effect of rules. None: they let the packet pass as it is.
fn effect(facts: &Facts<'_>, story: &Story, ruleset: &Ruleset, mode: Option<ProxyMode>) -> Option<Effect> {
    if mode == Some(ProxyMode::Ipvs)
        && let Some(reason) = ipvs_differs(facts, story)
    {
        return Some(unclear(facts.actor, &reason));
    }
    let comments: Vec<&str> = story
        .steps
        .iter()
        .filter_map(|step| ruleset.table().chain(&step.chain)?.rules.get(step.rule)?.comment)
        .collect();
    // kube-proxy's own rules look different, so only the agent's are shown.
    let rules = if facts.actor == Actor::Agent { story.tell(ruleset.table()) } else { Vec::new() };
    let end = match story.outcome {
        Outcome::Untouched => return None,
        Outcome::Rejected if mode == Some(ProxyMode::Iptables) && passes_iptables(facts, &comments) => {
            return None;
        }
        Outcome::Redirected { to, masqueraded } => End::Redirected { to, masqueraded },
        Outcome::Rejected => End::Refused,
        Outcome::Dropped => End::Dropped,
    };
    let reason = facts.reason(story, &comments, end);
    Some(Effect { actor: facts.actor, reason, rules, end })
}

/// Whether mode iptables does not reject what the other modes reject: other ports of a ClusterIP,
/// and the connections of a node's own host to an external IP without endpoints. The chain
/// `KUBE-EXTERNAL-SERVICES` is not in OUTPUT.
fn passes_iptables(facts: &Facts<'_>, comments: &[&str]) -> bool {
    let is_external_ip = facts.frontend.as_ref().is_some_and(words::Frontend::is_external_ip);
    comments.contains(&words::OTHER_PORT) || facts.packet.from == From::Host && is_external_ip
}

/// Where mode ipvs treats a packet differently from the other modes.
fn ipvs_differs(facts: &Facts<'_>, story: &Story) -> Option<String> {
    let external = facts.frontend.as_ref().filter(|frontend| frontend.is_external)?;
    if external.policy != TrafficPolicy::Local {
        return None;
    }
    let arrives = matches!(story.outcome, Outcome::Redirected { .. });
    if facts.packet.from == From::Elsewhere && arrives {
        return None;
    }
    Some(
        "kube-proxy runs in mode ipvs, and externalTrafficPolicy is Local: in this mode a node without an endpoint \
         gives its own pods any endpoint, its host none, and forwards other clients so that the answer is lost; a node \
         with endpoints uses only its own ones for everybody"
            .to_owned(),
    )
}

fn interface(from: From, pods: &LocalPods) -> Option<String> {
    let pattern = match pods {
        LocalPods::Interface(pattern) => Some(pattern),
        LocalPods::Unknown | LocalPods::Sources(_) => None,
    };
    let of_pods = |name: &str| match pattern {
        Some(InterfacePattern::Name(own)) => own == name,
        Some(InterfacePattern::Prefix(prefix)) => name.starts_with(prefix.as_str()),
        None => false,
    };
    match (from, pattern) {
        (From::Host, _) => None,
        (From::Pod, Some(InterfacePattern::Name(name))) => Some(name.clone()),
        (From::Pod, Some(InterfacePattern::Prefix(prefix))) => Some(format!("{prefix}0")),
        (From::Pod, None) => Some("cni0".to_owned()),
        (From::Elsewhere, _) => OUTSIDE.into_iter().find(|name| !of_pods(name)).map(str::to_owned),
    }
}
