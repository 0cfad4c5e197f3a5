//! What `probe` prints and saves. Pure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::table::{Cell, Expected, Observed, Seen, Whose};
use crate::text::{printable, wrap_lines};

#[cfg(test)]
pub(super) mod tests;

/// Marks a wrong cell, in addition to its colour.
const MARK: &str = " !";
const GAP: usize = 2;
const HEADINGS: [&str; 6] = ["source", "source IP", "destination", "target saw", "expected", "changed by"];

/// The target of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TargetKind {
    Canary,
    Own,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    /// `NAMESPACE/NAME`.
    pub(crate) service: String,
    pub(crate) target: TargetKind,
    /// Such as `TCP 80`.
    pub(crate) port: String,
    /// The nodes where the target runs.
    pub(crate) target_nodes: Vec<String>,
    /// That of the target.
    pub(crate) external_traffic_policy: String,
    /// Every source arrives.
    pub(crate) preserved: bool,
    /// Every observation was expected.
    pub(crate) as_expected: bool,
    /// One for each source and destination.
    pub(crate) cells: Vec<Cell>,
    /// What could not be told, and why.
    pub(crate) notes: Vec<String>,
}

/// The report for a person.
pub(crate) fn text(report: &Report, width: Option<usize>) -> String {
    let what = match report.target {
        TargetKind::Canary => "a canary of the same shape",
        TargetKind::Own => "the Service itself",
    };
    let head = format!(
        "{}: {what}, {}, externalTrafficPolicy {}, target on {}\n",
        report.service,
        report.port,
        report.external_traffic_policy,
        report.target_nodes.join(", ")
    );
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    rows.extend(report.cells.iter().map(row));
    let mut text = wrap_lines(&printable(head.trim_end()), width, GAP);
    text.push_str(&table(&rows));
    for note in &report.notes {
        text.push_str(&wrap_lines(&printable(&format!("note       {note}")), width, 11));
    }
    text.push_str(&verdict(report));
    text
}

fn verdict(report: &Report) -> String {
    let wrong = report.cells.iter().filter(|cell| cell.wrong).count();
    let unexpected = report.cells.iter().filter(|cell| cell.unexpected).count();
    let all = report.cells.len();
    let untold = report.cells.iter().filter(|cell| cell.observed == Observed::Reached).count();
    let first = match (wrong, untold) {
        (0, 0) => format!("{}: source IP preserved in all {all} cells", report.service),
        (0, _) => format!(
            "{}: no loss was seen, but {untold} of {all} cells do not tell the source IP",
            report.service
        ),
        _ => format!("{}: source IP lost in {wrong} of {all} cells, marked with !", report.service),
    };
    let second = match unexpected {
        0 => "; every cell is as expected".to_owned(),
        _ => format!("; {unexpected} not as expected"),
    };
    format!("{first}{second}\n")
}

fn row(cell: &Cell) -> [String; 6] {
    let own = cell.own.map(|own| own.to_string()).unwrap_or_default();
    let mark = if cell.wrong { MARK } else { "" };
    let expected = expectation(cell);
    let expected = if cell.unexpected { format!("UNEXPECTED, not {expected}") } else { expected };
    [
        cell.from.to_string(),
        own,
        format!("{} {}", cell.to, cell.address),
        observation(cell) + mark,
        expected,
        cell.changed_by.clone().unwrap_or_default(),
    ]
}

fn observation(cell: &Cell) -> String {
    match &cell.observed {
        Observed::Seen(all) => sources(all.iter().map(|seen| seen.source)),
        Observed::Reached => "reached".to_owned(),
        Observed::Silent(_) if !cell.wrong => "no answer, as intended".to_owned(),
        Observed::Silent(why) => format!("no answer ({why})"),
    }
}

fn expectation(cell: &Cell) -> String {
    let mut words: Vec<String> = Vec::new();
    for each in &cell.expected {
        let word = match each {
            Expected::Seen { sources, .. } => one_of(sources, &cell.observed),
            Expected::Silent { .. } => "no answer".to_owned(),
            Expected::Unclear { .. } => "unclear".to_owned(),
        };
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(" or ")
}

/// Of the addresses that a node may choose, the one that it has chosen, else the likeliest.
fn one_of(sources: &[std::net::IpAddr], observed: &Observed) -> String {
    let seen = |source: &&std::net::IpAddr| match observed {
        Observed::Seen(all) => all.iter().any(|seen| seen.source == **source),
        _ => false,
    };
    let one = sources.iter().find(seen).or_else(|| sources.first());
    one.map(ToString::to_string).unwrap_or_default()
}

fn sources(all: impl Iterator<Item = std::net::IpAddr>) -> String {
    let all: std::collections::BTreeSet<_> = all.collect();
    all.into_iter().map(|source| source.to_string()).collect::<Vec<_>>().join(" or ")
}

/// Columns as wide as their longest text. The table is not wrapped: it would not be one any more.
fn table(rows: &[[String; 6]]) -> String {
    let rows: Vec<[String; 6]> = rows.iter().map(|row| row.clone().map(|text| printable(&text))).collect();
    let mut widths = [0; 6];
    for row in &rows {
        for (width, text) in widths.iter_mut().zip(row) {
            *width = (*width).max(text.chars().count() + GAP);
        }
    }
    let line = |row: &[String; 6]| {
        let cells = row.iter().zip(widths).map(|(text, width)| format!("{text:<width$}"));
        format!("  {}", cells.collect::<String>()).trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// What the target saw, in words that do not depend on the addresses of a run.
pub(crate) fn meaning(observed: &Observed) -> String {
    let seen = |seen: &Seen| match &seen.whose {
        Whose::Own => "its own IP".to_owned(),
        Whose::OwnNode => "its node's IP".to_owned(),
        Whose::Node(node) => format!("an IP of node {node}"),
        Whose::Sidecar => format!("the sidecar's IP {}", seen.source),
        Whose::Unknown => seen.source.to_string(),
    };
    match observed {
        Observed::Seen(all) => {
            let words: std::collections::BTreeSet<String> = all.iter().map(seen).collect();
            words.into_iter().collect::<Vec<_>>().join(" or ")
        }
        Observed::Reached => "reached".to_owned(),
        Observed::Silent(_) => "no answer".to_owned(),
    }
}
