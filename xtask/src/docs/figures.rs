//! Figures that somebody measured: the text says where from, and `docs/measured/` has the same figure with its command and machine.
//!
//! `0.2 ms <!-- measured: webhook.p50 -->` is `p50` of `docs/measured/webhook.yaml`. A figure that is measured anew is changed there, and
//! lint names every place that still has the old one.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::Problem;
use super::markdown::{Marked, Page};

#[cfg(test)]
mod tests;

/// A file of `docs/measured/`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Measured {
    /// What prints the figures.
    command: String,
    /// What it ran on.
    machine: String,
    /// When, as 2026-01-31.
    date: String,
    /// Each with its unit, as it stands in the text.
    figures: BTreeMap<String, String>,
}

/// Where the figures are.
pub(super) const DIRECTORY: &str = "docs/measured";

/// Figures that have no source or differ from it, and sources that nothing uses. `measured` is by name of file.
pub(super) fn check<'a>(
    pages: impl Iterator<Item = &'a Page>,
    measured: &BTreeMap<String, Measured>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut used = BTreeSet::new();
    for page in pages {
        for marked in &page.figures {
            used.insert(marked.name.as_str());
            problems
                .extend(find_fault(marked, measured).map(|what| Problem::at(&page.path, marked.line, what)));
        }
    }
    for (name, file) in measured {
        let place = format!("{DIRECTORY}/{name}.yaml");
        for (field, text) in [("command", &file.command), ("machine", &file.machine), ("date", &file.date)] {
            if text.trim().is_empty() {
                problems.push(Problem::at(&place, 1, format!("{field} is empty")));
            }
        }
        for figure in file.figures.keys() {
            if !used.contains(format!("{name}.{figure}").as_str()) {
                problems.push(Problem::at(&place, 1, format!("no text uses {figure}")));
            }
        }
    }
    problems
}

fn find_fault(marked: &Marked, measured: &BTreeMap<String, Measured>) -> Option<String> {
    let Marked { name, before, .. } = marked;
    let known = name.split_once('.').and_then(|(file, figure)| measured.get(file)?.figures.get(figure));
    let Some(figure) = known else {
        return Some(format!("nothing in {DIRECTORY} is called {name}"));
    };
    let begins = before.strip_suffix(figure.as_str());
    let whole =
        begins.is_some_and(|rest| !rest.ends_with(|letter: char| letter.is_ascii_digit() || letter == '.'));
    (!whole)
        .then(|| format!("{name} is {figure} in {DIRECTORY}, and the text before the marker does not end so"))
}
