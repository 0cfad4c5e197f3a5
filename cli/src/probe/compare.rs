//! The difference between two runs, such as before and after an apply. Pure.
//!
//! Cells are the same if source and destination are, whatever addresses a canary and its clients
//! had. What the target saw is compared by whose address it was.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::report::{Report, meaning};
use super::table::{Cell, Destination, Source};
use crate::text::printable;

#[cfg(test)]
mod tests;

/// A run with what has changed since another.
#[derive(JsonSchema, Serialize)]
pub(crate) struct Compared<'a> {
    #[serde(flatten)]
    pub(crate) report: &'a Report,
    /// What has changed since the run of `--compare`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) changes: Option<Vec<String>>,
}

/// Source, destination, and whether the address is IPv6.
type Place<'a> = (&'a Source, &'a Destination, bool);

fn place(cell: &Cell) -> Place<'_> {
    (&cell.from, &cell.to, cell.address.is_ipv6())
}

/// The lines that tell what has changed.
pub(crate) fn differences(before: &Report, after: &Report) -> Vec<String> {
    let (old, new) = (&before.cells, &after.cells);
    let index: BTreeMap<Place<'_>, &Cell> = old.iter().map(|cell| (place(cell), cell)).collect();
    let asked: std::collections::BTreeSet<Place<'_>> = new.iter().map(place).collect();
    let mut changed: Vec<(String, String)> = Vec::new();
    for cell in new {
        let what = format!("{} to {}", cell.from, cell.to);
        let now = words(cell);
        match index.get(&place(cell)) {
            Some(earlier) if words(earlier) == now => {}
            Some(earlier) => changed.push((what, format!("{}  ->  {now}", words(earlier)))),
            None => changed.push((what, format!("not asked  ->  {now}"))),
        }
    }
    for earlier in old.iter().filter(|cell| !asked.contains(&place(cell))) {
        changed.push((
            format!("{} to {}", earlier.from, earlier.to),
            format!("{}  ->  not asked", words(earlier)),
        ));
    }
    let width = changed.iter().map(|(what, _)| what.chars().count()).max().unwrap_or_default();
    changed.iter().map(|(what, how)| printable(&format!("{what:<width$}  {how}"))).collect()
}

fn words(cell: &Cell) -> String {
    let mark = if cell.wrong { " !" } else { "" };
    format!("{}{mark}", meaning(&cell.observed))
}

/// The changes for a person.
pub(crate) fn text(changes: &[String]) -> String {
    if changes.is_empty() {
        return "No cell has changed since the saved run.\n".to_owned();
    }
    format!("Since the saved run:\n  {}\n", changes.join("\n  "))
}
