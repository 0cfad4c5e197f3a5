//! All objects in a table, one row each and one column per condition, as `kubectl get` prints
//! tables. Names are shortened if it does not fit into the terminal; the blocks below the table
//! have them in full. Pure.

use isp_api::IngressSourcePreserve;
use isp_api::conditions::find;
use isp_api::names::condition;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::report::{Context, holds, phase};
use crate::output::Symbols;
use crate::text::age;

const READY: (&str, &str) = ("READY", condition::READY);
const STEPS: [(&str, &str); 5] = [
    ("CHECKED", condition::CHECKED),
    ("AGENTS", condition::AGENTS_READY),
    ("LABELS", condition::LABELLED),
    ("ACKS", condition::ACKNOWLEDGED),
    ("LOCAL", condition::LOCAL_POLICY_SET),
];
const SIDECARS: (&str, &str) = ("SIDECARS", condition::SIDECARS_CONSISTENT);
/// A condition that is not reported, or whose value is outdated.
const NONE: &str = "-";
/// The end of a shortened name.
const CUT: &str = "..";
/// Names are not shortened below this width.
const MIN_NAME: usize = 8;

pub(super) fn table(objects: &[IngressSourcePreserve], context: &Context<'_>) -> String {
    let with_sidecars = objects.iter().any(|object| status_of(object, SIDECARS.1).is_some());
    let steps: Vec<(&str, &str)> = STEPS.into_iter().chain(with_sidecars.then_some(SIDECARS)).collect();
    let mut rows = vec![header(&steps)];
    rows.extend(objects.iter().map(|object| row(object, &steps, context)));
    layout(rows, context.width)
}

fn header(steps: &[(&str, &str)]) -> Vec<String> {
    let steps = steps.iter().map(|(title, _)| *title);
    let titles = ["NAME", "PHASE", READY.0].into_iter().chain(steps).chain(["AGE"]);
    titles.map(str::to_owned).collect()
}

fn row(object: &IngressSourcePreserve, steps: &[(&str, &str)], context: &Context<'_>) -> Vec<String> {
    let phase = phase(object, context);
    let ready = if phase == "Unknown" { NONE } else { symbol(object, READY.1, context.symbols) };
    let steps = steps.iter().map(|(_, type_)| symbol(object, type_, context.symbols).to_owned());
    let created = object.creation_timestamp().map(|time| time.0);
    let age = created.map_or_else(|| NONE.to_owned(), |created: Timestamp| age(created, context.now));
    [object.name_any(), phase, ready.to_owned()].into_iter().chain(steps).chain([age]).collect()
}

fn status_of(object: &IngressSourcePreserve, type_: &str) -> Option<bool> {
    let conditions = object.status.as_ref().map(|status| status.conditions.as_slice());
    find(conditions.unwrap_or_default(), type_).map(holds)
}

fn symbol(object: &IngressSourcePreserve, type_: &str, symbols: Symbols) -> &'static str {
    match status_of(object, type_) {
        Some(true) => symbols.yes(),
        Some(false) => symbols.no(),
        None => NONE,
    }
}

/// Columns as wide as their widest cell, two blanks apart.
fn layout(mut rows: Vec<Vec<String>>, width: Option<usize>) -> String {
    let natural = widths(&rows);
    let total = natural.iter().map(|width| width + 2).sum::<usize>() - 2;
    let excess = width.map_or(0, |width| total.saturating_sub(width));
    // Names are ASCII.
    for name in rows.iter_mut().map(|row| &mut row[0]).filter(|_| excess > 0) {
        let max = natural[0].saturating_sub(excess).max(MIN_NAME);
        if name.len() > max {
            name.replace_range(max - CUT.len().., CUT);
        }
    }
    let widths = widths(&rows);
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    };
    rows.iter().map(line).collect()
}

fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    (0..rows[0].len()).map(width).collect()
}
