//! What a client has printed, line by line, as an observation for each destination. Pure.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde::Deserialize;

use super::table::{Observed, Seen, Whose};

#[cfg(test)]
mod tests;

/// A line of the client.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Line {
    #[serde(default)]
    pub(crate) question: usize,
    /// The address that the client sent from.
    pub(crate) own: Option<IpAddr>,
    pub(crate) peer_ip: Option<IpAddr>,
    pub(crate) node: Option<String>,
    pub(crate) error: Option<String>,
    /// An HTTP status: the server answered, if not as asked.
    pub(crate) status: Option<u16>,
}

/// All requests to one destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) own: Option<IpAddr>,
    pub(crate) observed: Observed,
}

/// The lines of a client, which asked so many destinations. Lines that are no JSON are skipped: the
/// container runtime may add some.
pub(crate) fn read(log: &str, destinations: usize) -> Vec<Answer> {
    let lines: Vec<Line> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    (0..destinations).map(|question| fold(lines.iter().filter(|line| line.question == question))).collect()
}

/// A rule that comes late makes the first requests fail, so failures count only if there is no
/// answer at all.
pub(crate) fn fold<'a>(lines: impl Iterator<Item = &'a Line>) -> Answer {
    let (mut own, mut seen, mut reached, mut failure) = (None, BTreeSet::new(), false, None);
    for line in lines {
        own = line.own.or(own);
        match (line.peer_ip, &line.error) {
            (Some(source), None) => {
                seen.insert(Seen { source, whose: Whose::Unknown, target_node: line.node.clone() });
            }
            (None, None) => reached = true,
            (_, Some(_)) if line.status.is_some() => reached = true,
            (_, Some(error)) => failure = Some(error.clone()),
        }
    }
    let observed = if !seen.is_empty() {
        Observed::Seen(seen)
    } else if reached {
        Observed::Reached
    } else {
        Observed::Silent(failure.unwrap_or_else(|| "the client printed nothing".to_owned()))
    };
    Answer { own, observed }
}
