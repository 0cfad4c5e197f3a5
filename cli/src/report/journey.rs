//! How a path ends, in the words of the page. A connection may take several ways: the worst counts.

use isp_paths::{Flow, Hop, Key, Outcome, Path, Place};
use isp_report::model;

use super::state::State;
use crate::trace::result;

/// The journey of a connection to a Service over these ways. `at` is the node at which it arrives.
pub(super) fn journey(state: &State<'_>, service: &Key, at: Option<&str>, ways: &[Path]) -> model::Journey {
    let ends = ways.iter().map(|way| (outcome(state, service, at, way), way));
    let Some((outcome, way)) = ends.clone().max_by_key(|(outcome, _)| gravity(*outcome)) else {
        return nothing(model::Outcome::Unclear, "No way is known.");
    };
    let alike = ends.filter(|(other, _)| *other == outcome).count();
    let mut line = sentence(&result(way));
    if alike < ways.len() {
        line = format!("{line} This holds for {alike} of {} possible ways.", ways.len());
    }
    model::Journey { outcome, arrives: arrives(way), line, hops: way.hops.iter().map(hop).collect() }
}

/// A journey without hops.
pub(super) fn nothing(outcome: model::Outcome, line: &str) -> model::Journey {
    model::Journey { outcome, arrives: None, line: line.to_owned(), hops: Vec::new() }
}

/// Among several ways, the gravest end is shown.
fn gravity(outcome: model::Outcome) -> u8 {
    match outcome {
        model::Outcome::Preserved => 0,
        model::Outcome::Dropped => 1,
        model::Outcome::Unclear => 2,
        model::Outcome::Lost => 3,
        model::Outcome::Unreachable => 4,
    }
}

fn outcome(state: &State<'_>, service: &Key, at: Option<&str>, way: &Path) -> model::Outcome {
    match &way.outcome {
        Outcome::Delivered(delivery) if delivery.kept => model::Outcome::Preserved,
        Outcome::Delivered(_) => model::Outcome::Lost,
        Outcome::Dropped { .. } | Outcome::Refused { .. } => {
            let last = way.hops.iter().rev().find_map(node);
            let is_intended = last.or(at).is_some_and(|node| state.is_closed(service, node));
            if is_intended { model::Outcome::Dropped } else { model::Outcome::Unreachable }
        }
        // The endpoint is outside the cluster, and nobody here knows what it sees.
        Outcome::Leaves { .. } | Outcome::Unclear { .. } => model::Outcome::Unclear,
    }
}

/// The node of a hop.
pub(super) fn node(hop: &Hop) -> Option<&str> {
    match &hop.place {
        Place::Node(node) => Some(node),
        _ => None,
    }
}

fn arrives(way: &Path) -> Option<String> {
    let Outcome::Delivered(delivery) = &way.outcome else { return None };
    let seen = delivery.seen().unwrap_or(&delivery.network);
    Some(match &seen.node {
        Some(node) => format!("{} (node {node})", seen.address),
        None => seen.address.to_string(),
    })
}

fn hop(hop: &Hop) -> model::Hop {
    let flow = |flow: &Flow| model::Flow {
        source: flow.source.address.to_string(),
        destination: flow.destination.to_string(),
    };
    model::Hop {
        place: hop.place.to_string(),
        actor: hop.actor.to_string(),
        reason: sentence(&hop.reason),
        before: flow(&hop.before),
        after: flow(&hop.after),
        rules: hop.rules.clone(),
        assumed: hop.assumed,
    }
}

/// With a capital letter and a full stop.
pub(super) fn sentence(text: &str) -> String {
    let mut rest = text.chars();
    let stop = if text.ends_with('.') { "" } else { "." };
    rest.next().map_or_else(String::new, |first| format!("{}{}{stop}", first.to_uppercase(), rest.as_str()))
}
