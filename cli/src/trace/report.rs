//! The text of a trace: numbered hops, and a result for each way.

use isp_paths::{Actor, Delivery, Hop, Outcome, Path, Place};

use super::Report;
use super::group::{Group, groups};
use crate::text::{Block, count, cut, few};

#[cfg(test)]
mod tests;

/// So many ways are printed; more are counted.
const MAX_WAYS: usize = 12;

pub(super) fn text(report: &Report, width: Option<usize>) -> String {
    let groups = groups(&report.paths);
    let mut text = String::new();
    for (place, group) in groups.iter().take(MAX_WAYS).enumerate() {
        if place > 0 {
            text.push('\n');
        }
        let number = if groups.len() > 1 { format!("way {}: ", place + 1) } else { String::new() };
        let sent = &group.first.sent;
        let heading = format!(
            "{number}{} {} to {}",
            report.protocol,
            whose(&report.from, &sent.source.to_string()),
            sent.destination
        );
        let mut block = Block::new(&heading, width);
        for (place, hop) in group.first.hops.iter().enumerate() {
            block.field(&(place + 1).to_string(), hop_lines(hop));
        }
        block.field("result", [result(group.first)]);
        let also = also(group);
        if !also.is_empty() {
            block.field("also", also);
        }
        text.push_str(&block.into_text());
    }
    let mut end = Vec::new();
    if groups.len() > MAX_WAYS {
        let more = u64::try_from(groups.len() - MAX_WAYS).unwrap_or(u64::MAX);
        end.push(format!(
            "and {} (-o json shows all, --via NODE those through one node)",
            count(more, "more way")
        ));
    }
    if report.paths.iter().flat_map(|path| &path.hops).any(|hop| hop.assumed) {
        end.push("(assumed): the API does not show it; this is the usual behaviour".to_owned());
    }
    end.extend(report.gaps.iter().map(|gap| format!("not known: {gap}")));
    for line in end {
        text.push('\n');
        text.push_str(&crate::text::wrap_lines(&crate::text::printable(&line), width, 2));
    }
    text
}

fn whose(from: &str, address: &str) -> String {
    if from == address { address.to_owned() } else { format!("{from} ({address})") }
}

fn hop_lines(hop: &Hop) -> Vec<String> {
    let assumed = if hop.assumed { " (assumed)" } else { "" };
    let place = match (&hop.place, hop.actor) {
        (Place::Outside, actor) => actor.to_string(),
        (place, actor) => format!("{place}, {actor}"),
    };
    let mut lines = vec![format!("{place}: {}{assumed}", hop.reason)];
    if hop.before.source.address != hop.after.source.address {
        lines.push(format!("source {} -> {}", hop.before.source.address, hop.after.source));
    }
    if hop.before.destination != hop.after.destination {
        lines.push(format!("destination {} -> {}", hop.before.destination, hop.after.destination));
    }
    lines
}

fn result(path: &Path) -> String {
    match &path.outcome {
        Outcome::Delivered(delivery) => delivered(path, delivery),
        Outcome::Refused { reason } => format!("refused, the client gets an error: {reason}"),
        Outcome::Dropped { reason } => format!("dropped, the client gets no answer: {reason}"),
        Outcome::Leaves { source, reason } => {
            format!("leaves the cluster with the source IP {source}: {reason}")
        }
        Outcome::Unclear { reason } => format!("unclear: {reason}"),
    }
}

fn delivered(path: &Path, delivery: &Delivery) -> String {
    let to = match (&delivery.pod, &delivery.node) {
        (Some(pod), Some(node)) => format!("pod {pod} on node {node}"),
        (Some(pod), None) => format!("pod {pod}"),
        (None, Some(node)) => format!("{} on node {node}", delivery.destination),
        (None, None) => delivery.destination.to_string(),
    };
    let Some(seen) = delivery.seen() else {
        return format!("delivered to {to}; its own proxy sees {}", delivery.network);
    };
    let who = if delivery.gateway { "the gateway" } else { "the application" };
    let behind = match &delivery.application {
        Some(own) if delivery.gateway => {
            format!("; applications behind it see {}, and the gateway's peer in X-Forwarded-For", own.address)
        }
        _ => String::new(),
    };
    let client = path.sent.source.address;
    if seen.address == client {
        return format!("delivered to {to}; {who} sees {client}{behind}");
    }
    let because = match path.loss() {
        Some(hop) => format!(": {}", cause(hop)),
        None => ", an address of the client's own node".to_owned(),
    };
    format!("delivered to {to}; {who} sees {} instead of {client}{because}{behind}", seen.address)
}

/// Who lost the source IP, and why.
fn cause(hop: &Hop) -> String {
    match (hop.actor, hop.reason.rsplit_once("(SNAT), because ")) {
        (Actor::Sidecar, _) => format!("the sidecar of {} works in mode REDIRECT", hop.place),
        (_, Some((_, because))) => format!("{} applied SNAT because {because}", hop.place),
        (_, None) => format!("{} ({}) replaced it", hop.place, hop.actor),
    }
}

/// The other ways of a group: where they differ.
fn also(group: &Group<'_>) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    let mut pods: Vec<String> = Vec::new();
    let entry = |path: &Path| {
        path.hops.iter().find_map(|hop| match &hop.place {
            Place::Node(node) => Some(node.clone()),
            _ => None,
        })
    };
    let first_entry = entry(group.first);
    let target = |path: &Path| match &path.outcome {
        Outcome::Delivered(delivery) => Some(match &delivery.pod {
            Some(pod) => format!("pod {pod}"),
            None => delivery.destination.to_string(),
        }),
        _ => None,
    };
    let first_target = target(group.first);
    for path in &group.others {
        entries.extend(entry(path).filter(|node| Some(node) != first_entry.as_ref()));
        pods.extend(target(path).filter(|pod| Some(pod) != first_target.as_ref()));
    }
    for list in [&mut entries, &mut pods] {
        list.sort();
        list.dedup();
    }
    let others = u64::try_from(group.others.len()).unwrap_or(u64::MAX);
    let mut lines = Vec::new();
    if !group.others.is_empty() {
        let through =
            if entries.is_empty() { String::new() } else { format!(" through node {}", few(&entries)) };
        let to = if pods.is_empty() { String::new() } else { format!(" to {}", few(&pods)) };
        lines.push(format!("{} of the same kind{through}{to}", count(others, "way")));
    }
    cut(lines, 1, "")
}
