//! The explanation as text.

use isp_pod_rules::decode::PodRules;
use isp_pod_rules::explain::{Explanation, FamilyTraffic, Mode, Origin, Target, Traffic};
use isp_pod_rules::routing::{Routing, RoutingRule};

use super::{Report, Traced};
use crate::text::Block;

#[cfg(test)]
mod tests;

/// The rules that every network namespace has: for the tables `local`, `main` and `default`.
const USUAL_TABLES: [u32; 3] = [253, 254, 255];

pub(super) fn text(report: &Report<'_>, width: Option<usize>) -> String {
    let explanation = report.explanation;
    let heading = format!("{}: {}", report.pod, heading(explanation, report.written_by));
    let mut block = Block::new(&heading, width);
    block.field("node", [report.node.to_owned()]);
    let claims = explanation.claims.iter().map(|claim| format!("{} by {}", claim.mode.name(), claim.by));
    block.field("claimed", claims);
    match &explanation.families[..] {
        // Both families have the same rules, except that their networks differ.
        [first, second] if first.inbound == second.inbound && first.outbound.tcp == second.outbound.tcp => {
            family(&mut block, first, Some(second));
        }
        families => families.iter().for_each(|each| family(&mut block, each, None)),
    }
    block.field("unknown", explanation.unknown.iter().cloned());
    block.field("problem", explanation.findings.iter().map(|finding| finding.message.clone()));
    if let Some(traced) = &report.packet {
        block.field("packet", steps(traced));
    }
    let rules = report.rules.as_deref().map(|rules| format!("\n{rules}")).unwrap_or_default();
    block.into_text() + &rules
}

fn heading(explanation: &Explanation, written_by: Option<&str>) -> String {
    let mode = match explanation.mode {
        Mode::None => return "no redirect, no rule sends a connection to a proxy".to_owned(),
        Mode::Mixed => "REDIRECT and TPROXY",
        Mode::Unclear => "unclear",
        mode => mode.name(),
    };
    let origins = explanation.origins.iter().map(|origin| match origin {
        Origin::Istio => "Istio's rules",
        Origin::IstioAmbient => "rules of Istio's ambient mode",
        Origin::PodRedirect => "rules of an IngressSourcePreserve",
        Origin::Unknown => "rules of unknown origin",
    });
    let origins: Vec<&str> = origins.collect();
    let writer = written_by.map(|by| format!("{by}, ")).unwrap_or_default();
    let back_ends: Vec<String> = explanation.back_ends.iter().map(ToString::to_string).collect();
    format!("{mode}, by {} ({writer}{})", origins.join(" and "), back_ends.join(" and "))
}

/// The traffic of a family, or of two that have the same.
fn family(block: &mut Block, first: &FamilyTraffic, second: Option<&FamilyTraffic>) {
    let addresses = [Some(first), second].into_iter().flatten().map(|each| each.address.to_string());
    block.field("address", [addresses.collect::<Vec<_>>().join(", ")]);
    block.field("inbound", traffic(&first.inbound));
    let mut outbound = traffic(&first.outbound);
    outbound.extend(second.into_iter().flat_map(|other| destinations(&other.outbound)));
    block.field("outbound", outbound);
    let exempt = &first.exempt;
    let uids = exempt.uids.iter().map(|uid| format!("UID {uid}"));
    let gids = exempt.gids.iter().map(|gid| format!("GID {gid}"));
    let marks = exempt.marks.iter().map(|mark| format!("mark {mark:#x}"));
    let all: Vec<_> = uids.chain(gids).chain(marks).chain(exempt.control_groups.iter().cloned()).collect();
    block.field("exempt", (!all.is_empty()).then(|| all.join(", ")));
}

fn traffic(traffic: &Traffic) -> Vec<String> {
    let lines = |protocol: &'static str, all: &[isp_pod_rules::explain::Ports]| -> Vec<String> {
        all.iter().map(|ports| format!("{protocol} {ports}: {}", ports.target)).collect()
    };
    let mut found = lines("tcp", &traffic.tcp);
    found.extend(destinations(traffic));
    // Proxies usually leave UDP alone.
    if traffic.udp.iter().any(|ports| ports.target != Target::Direct) {
        found.extend(lines("udp", &traffic.udp));
    } else {
        found.push(format!("udp: {}", Target::Direct));
    }
    found
}

fn destinations(traffic: &Traffic) -> Vec<String> {
    traffic.destinations.iter().map(|each| format!("tcp to {}: {}", each.addresses, each.target)).collect()
}

fn steps(traced: &Traced) -> Vec<String> {
    let mut lines = vec![traced.packet.clone()];
    let steps = traced.trace.steps.iter();
    lines.extend(steps.map(|step| format!("  {} {} {}: {}", step.hook, step.table, step.chain, step.rule)));
    lines.push(format!("  {}", traced.trace.outcome));
    lines
}

/// All rules, and the routing rules that not every namespace has.
pub(super) fn raw(rules: &PodRules) -> String {
    let PodRules { ruleset, routing } = rules;
    let unusual = routing.rules.iter().filter(|rule| !USUAL_TABLES.contains(&rule.table));
    let lines = unusual.flat_map(|rule| routing_lines(rule, routing));
    let routing: String = lines.map(|line| line + "\n").collect();
    format!("{ruleset}{routing}")
}

fn routing_lines(rule: &RoutingRule, routing: &Routing) -> Vec<String> {
    let family = if rule.ipv6 { "-6" } else { "-4" };
    let mark = rule.mark.map(|(value, mask)| match mask {
        u32::MAX => format!(" fwmark {value:#x}"),
        mask => format!(" fwmark {value:#x}/{mask:#x}"),
    });
    let unknown = if rule.unknown { " # with conditions that are not shown" } else { "" };
    let (preference, table) = (rule.preference, rule.table);
    let mut lines = vec![format!(
        "ip {family} rule add{} lookup {table} preference {preference}{unknown}",
        mark.unwrap_or_default()
    )];
    let routes = routing.routes.iter().filter(|route| route.table == table);
    let routes = routes.filter(|route| route.destination.addr().is_ipv6() == rule.ipv6);
    lines.extend(routes.map(|route| {
        let interface = route.interface.and_then(|number| routing.links.get(&number));
        let kind = match route.kind {
            isp_pod_rules::routing::RouteKind::Local => "local ",
            isp_pod_rules::routing::RouteKind::Unicast | isp_pod_rules::routing::RouteKind::Other => "",
        };
        let device = interface.map(|name| format!(" dev {name}")).unwrap_or_default();
        format!("ip {family} route add {kind}{}{device} table {table}", route.destination)
    }));
    lines
}
