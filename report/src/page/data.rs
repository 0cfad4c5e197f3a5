//! The data of the script, as JSON inside the page. Each set of nodes is written once.

use std::collections::BTreeMap;

use serde::Serialize;

use super::label::Labels;
use super::markup::is_deceptive;
use crate::model::{Journey, Node, Outcome, Report, SourceKind, Stage, WayKind};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    stages: &'a [Stage],
    outcomes: Vec<Kind>,
    nodes: &'a [Node],
    /// Sets of nodes; ends of paths refer to them by number.
    sets: Vec<&'a [String]>,
    services: Vec<&'a str>,
    paths: Vec<Path<'a>>,
}

#[derive(Serialize)]
struct Kind {
    key: &'static str,
    label: &'static str,
    mark: &'static str,
}

#[derive(Serialize)]
struct Path<'a> {
    service: &'a str,
    from: End<'a, SourceKind>,
    to: End<'a, WayKind>,
    journeys: &'a [Journey],
}

#[derive(Serialize)]
struct End<'a, K> {
    kind: K,
    address: &'a str,
    label: String,
    set: usize,
}

/// The JSON. It contains no `<`, so nothing in it ends the script element.
pub(super) fn json(report: &Report) -> String {
    let labels = Labels::new(&report.nodes);
    let mut sets: Vec<&[String]> = Vec::new();
    let mut numbers: BTreeMap<&[String], usize> = BTreeMap::new();
    let mut number = |names| {
        *numbers.entry(names).or_insert_with(|| {
            sets.push(names);
            sets.len() - 1
        })
    };
    let paths = report.paths.iter().map(|path| Path {
        service: &path.service,
        from: End {
            kind: path.from.kind,
            address: &path.from.address,
            label: labels.source(&path.from),
            set: number(&path.from.nodes),
        },
        to: End {
            kind: path.to.kind,
            address: &path.to.address,
            label: labels.destination(&path.to),
            set: number(&path.to.nodes),
        },
        journeys: &path.journeys,
    });
    let paths = paths.collect();
    let data = Data {
        stages: &report.stages,
        outcomes: Outcome::ALL
            .map(|each| Kind { key: each.key(), label: each.label(), mark: each.mark() })
            .into(),
        nodes: &report.nodes,
        sets,
        services: report.services.iter().map(|service| service.name.as_str()).collect(),
        paths,
    };
    // The values are text, numbers and lists of them, which serde_json can always write.
    let json = serde_json::to_string(&data).unwrap_or_else(|_| "{}".to_owned());
    safe(&json)
}

/// Outside of its strings, JSON has none of these characters; inside, `\u` stands for them.
fn safe(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            c if is_deceptive(c) => text.push_str("\\ufffd"),
            c => text.push(c),
        }
    }
    text
}
