//! Formats a table for people.

use super::{Cell, Outcome, Table, Target};
use crate::screen::{Screen, Tone};

/// Marks a wrong result, in addition to its colour.
const MARK: &str = " !";
const INTENDED: &str = "no answer, as intended";
/// The minimum widths: source, source IP, destination, observed IP. IPv6 addresses need more.
const COLUMNS: [usize; 4] = [16, 16, 32, 18];
const GAP: usize = 2;

/// The table's lines, with a heading.
pub(crate) fn lines(table: &Table, mesh: bool, screen: &Screen) -> Vec<String> {
    let columns @ [who, own, to, address] = columns(table);
    let gateway = if mesh { format!("{:<address$}", "gateway sees") } else { String::new() };
    let status = if mesh { "status" } else { "" };
    let mut lines = vec![format!(
        "  {:<who$}{:<own$}{:<to$}{gateway}{:<address$}{status}",
        "source", "source IP", "destination", "application sees"
    )];
    lines.extend(table.cells.iter().map(|cell| format!("  {}", line(cell, mesh, columns, screen))));
    lines
}

fn columns(table: &Table) -> [usize; 4] {
    let [who, mut own, mut to, address] = COLUMNS;
    for cell in &table.cells {
        own = own.max(cell.own.to_string().len() + GAP);
        to = to.max(what(cell).len() + GAP);
    }
    [who, own, to, address]
}

fn what(cell: &Cell) -> String {
    format!("{} {}", short(cell.to), cell.address)
}

fn line(cell: &Cell, mesh: bool, [who, own, to, address]: [usize; 4], screen: &Screen) -> String {
    let what = what(cell);
    let head = format!("{:<who$}{:<own$}{what:<to$}", cell.from, cell.own);
    let marked = |text: String, wrong: bool, width: usize| {
        let text = if wrong { text + MARK } else { text };
        let padded = format!("{text:<width$}");
        screen.tinted(if wrong { Tone::Bad } else { Tone::Good }, &padded)
    };
    let mut line = head;
    match &cell.outcome {
        Outcome::Silent(_) if !cell.wrong.any() => line += INTENDED,
        Outcome::Silent(why) => line += &marked(format!("no answer ({why})"), true, 0),
        Outcome::Seen(seen) => {
            if let Some(gateway) = seen.gateway {
                line += &marked(gateway.to_string(), cell.wrong.gateway, address);
            }
            let width = if mesh { address } else { 0 };
            line += &marked(seen.application.to_string(), cell.wrong.application, width);
            if mesh {
                line += &marked(seen.status.to_string(), cell.wrong.status, 0);
            }
            if cell.wrong.way {
                line += &marked("  bypasses ingress".to_owned(), true, 0);
            }
        }
    }
    if let Some(expected) = &cell.unexpected {
        line += &screen.tinted(Tone::Bad, &format!("  UNEXPECTED, not {}", words(expected)));
    }
    line
}

fn short(target: Target) -> &'static str {
    match target {
        Target::ExternalAddress => "external",
        Target::IngressNodePort => "ingress node",
        Target::OtherNodePort => "other node",
        Target::ClusterIp => "ClusterIP",
    }
}

fn words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Silent(_) => "no answer".to_owned(),
        Outcome::Seen(seen) => {
            let mut words = Vec::new();
            words.extend(seen.gateway.map(|address| format!("{address} at the gateway")));
            words.push(format!("{} at the application", seen.application));
            if seen.gateway.is_some() {
                words.push(seen.status.to_string());
            }
            words.extend(
                seen.through_router
                    .filter(|through| !through)
                    .map(|_| "bypassing the ingress node".to_owned()),
            );
            words.join(", ")
        }
    }
}

/// The differences between two tables, one line per changed cell.
pub(crate) fn differences(before: &Table, after: &Table) -> Vec<String> {
    let pairs = before.cells.iter().zip(&after.cells);
    let changed: Vec<_> = pairs
        .filter(|(before, after)| !before.outcome.is_like(&after.outcome))
        .map(|(before, after)| (format!("{} to {}", before.from, before.to), before, after))
        .collect();
    let width = changed.iter().map(|(what, ..)| what.len()).max().unwrap_or_default();
    changed
        .iter()
        .map(|(what, before, after)| {
            format!("  {what:<width$}  {}  ->  {}", words(&before.outcome), words(&after.outcome))
        })
        .collect()
}
