//! Checks measured figures: a marker in the text names the source, and `docs/measured/` has the
//! same figure with its command and machine.
//!
//! `0.2 ms <!-- measured: webhook.p50 -->` is `p50` in `docs/measured/webhook.yaml`. After a new
//! measurement, change it there, and lint names every place with the old figure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::Problem;
use super::markdown::{Marked, Page};

#[cfg(test)]
mod tests;

/// A file in `docs/measured/`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Measured {
    /// The command that prints the figures.
    command: String,
    /// The machine it ran on.
    machine: String,
    /// The date, as 2026-01-31.
    date: String,
    /// The figures with their units, exactly as in the text.
    figures: BTreeMap<String, String>,
}

/// The directory of the figures.
pub(super) const DIRECTORY: &str = "docs/measured";

/// Finds figures that have no source or differ from it, and sources that nothing uses. `measured`
/// is keyed by file name.
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
                problems.push(Problem::at(&place, 1, format!("no page uses {figure}")));
            }
        }
    }
    problems
}

fn find_fault(marked: &Marked, measured: &BTreeMap<String, Measured>) -> Option<String> {
    let Marked { name, before, .. } = marked;
    let known = name.split_once('.').and_then(|(file, figure)| measured.get(file)?.figures.get(figure));
    let Some(figure) = known else {
        return Some(format!("{DIRECTORY} has no figure {name}"));
    };
    let begins = before.strip_suffix(figure.as_str());
    let whole =
        begins.is_some_and(|rest| !rest.ends_with(|letter: char| letter.is_ascii_digit() || letter == '.'));
    (!whole).then(|| {
        format!("{name} is {figure} in {DIRECTORY}, but the text before the marker ends differently")
    })
}
