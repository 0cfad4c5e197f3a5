//! Checks metrics: programs export every metric that docs, alerts and dashboard mention, and every
//! exported metric is documented.
//!
//! Names are parsed from the sources that register them. The programs themselves could list them
//! only while they run in a cluster.

use std::collections::BTreeSet;

#[cfg(test)]
mod tests;

/// The prefix of all the project's metrics.
const PREFIX: &str = "isp_";

/// A metric that a source registers.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Metric {
    /// The exported name; for a histogram without `_bucket`, `_sum` and `_count`.
    pub(super) name: String,
    is_histogram: bool,
}

impl Metric {
    fn is_called(&self, name: &str) -> bool {
        match name.strip_prefix(self.name.as_str()) {
            Some("") => true,
            Some("_bucket" | "_sum" | "_count") => self.is_histogram,
            _ => false,
        }
    }
}

/// The metrics that a source registers.
pub(super) fn registered(source: &str) -> Vec<Metric> {
    let Some(prefix) = literal(source, "sub_registry_with_prefix(") else { return Vec::new() };
    let calls = source.split("registry.register").skip(1);
    calls.filter_map(|call| metric(source, prefix, call)).collect()
}

fn metric(source: &str, prefix: &str, call: &str) -> Option<Metric> {
    let call = &call[..call.find(");")?];
    let name = literal(call, "(")?;
    let unit = if call.contains("Unit::Seconds") { "_seconds" } else { "" };
    let field = call.rsplit("self.").next()?.split('.').next()?;
    // The declared type of the field determines the metric's type.
    let declared = source.split_once(&format!("\n    {field}: "))?.1.lines().next()?;
    let total = if declared.contains("Counter") { "_total" } else { "" };
    let is_histogram = declared.contains("Histogram");
    Some(Metric { name: format!("{prefix}_{name}{unit}{total}"), is_histogram })
}

/// The first string literal after `opening`.
fn literal<'a>(text: &'a str, opening: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(opening)?;
    rest.trim_start().strip_prefix('"')?.split('"').next()
}

/// The words of a text that look like the project's metrics. `crates` are look-alikes to skip.
pub(super) fn named(text: &str, crates: &BTreeSet<String>) -> BTreeSet<String> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    let ours = words.filter(|word| word.len() > PREFIX.len() && word.starts_with(PREFIX));
    let ours = ours.filter(|word| !crates.contains(*word));
    ours.map(str::to_owned).collect()
}

/// Names that no source registers.
pub(super) fn unknown<'a>(named: &'a BTreeSet<String>, metrics: &[Metric]) -> Vec<&'a str> {
    let known = |name: &String| metrics.iter().any(|metric| metric.is_called(name));
    named.iter().filter(|name| !known(name)).map(String::as_str).collect()
}

/// Metrics that no text mentions.
pub(super) fn undocumented<'a>(named: &BTreeSet<String>, metrics: &'a [Metric]) -> Vec<&'a str> {
    let is_there = |metric: &&Metric| named.iter().any(|name| metric.is_called(name));
    metrics.iter().filter(|metric| !is_there(metric)).map(|metric| metric.name.as_str()).collect()
}
