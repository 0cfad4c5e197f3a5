//! The report: a block for each finding, not too many of one code, then checks that passed, and a
//! summary.

use super::cluster::Cluster;
use super::examine::Examination;
use super::finding::{Finding, Severity};
use super::kinds::Kind;
use crate::text::{Block, count, cut, printable, wrap_lines};

/// So many findings of one code and severity are printed in full.
const MAX_BLOCKS: usize = 10;
/// So many of the others are named.
const MAX_NAMES: usize = 5;
/// Further lines of the lines after the findings begin in this column.
const INDENT: usize = 4;
/// Longer lines are cut.
const MAX_LINE: usize = 2000;

/// Findings of one severity and code must follow each other.
pub(super) fn text(cluster: &Cluster, examination: &Examination, width: Option<usize>) -> String {
    let Examination { findings: found, passed } = examination;
    let line = |line: String| wrap_lines(&line, width, INDENT);
    let mut text = String::new();
    for alike in found.chunk_by(|a, b| (a.severity, a.code) == (b.severity, b.code)) {
        let (whole, others) = alike.split_at(alike.len().min(MAX_BLOCKS));
        for finding in whole {
            text.push_str(&block(finding, width));
            text.push('\n');
        }
        if let Some(first) = others.first() {
            let names: Vec<String> =
                others.iter().map(|finding| plain(&finding.subject.to_string())).collect();
            let names = cut(names, MAX_NAMES, " (-o json lists all)").join(", ");
            let (severity, code) = (first.severity.as_str(), first.code.as_str());
            let number = others.len();
            text.push_str(&line(format!("{severity} {code}  the same for {number} more: {names}")));
            text.push('\n');
        }
    }
    text.extend(passed.iter().map(|passed| line(format!("ok  {}", passed.line))));
    if !passed.is_empty() {
        text.push('\n');
    }
    text.push_str(&line(summary(cluster, found)));
    text
}

fn block(finding: &Finding, width: Option<usize>) -> String {
    let Finding { code, severity, subject, line, reason, path, remedy, .. } = finding;
    let head = plain(&format!("{subject}: {line}"));
    let heading = format!("{} {}  {head}", severity.as_str(), code.as_str());
    let mut block = Block::new(&heading, width);
    block.field("why", [plain(reason)]);
    block.field("path", path.iter().map(|hop| plain(hop)));
    block.commands("to do", remedy.iter().map(|step| plain(step)));
    block.into_text()
}

/// Text from objects of the cluster, made safe for a terminal: one line, no control characters.
fn plain(text: &str) -> String {
    let mut plain: String = printable(text).chars().take(MAX_LINE).collect();
    if text.chars().nth(MAX_LINE).is_some() {
        plain.push_str("...");
    }
    plain
}

fn number(length: usize, noun: &str) -> String {
    count(u64::try_from(length).unwrap_or(u64::MAX), noun)
}

fn summary(cluster: &Cluster, found: &[Finding]) -> String {
    let exposed = cluster.services.values().filter(|service| service.facts.exposed).count();
    let examined = format!(
        "{}, {} ({exposed} exposed), {}, {}",
        number(cluster.objects.len(), Kind::IngressSourcePreserve.as_str()),
        number(cluster.services.len(), "Service"),
        number(cluster.nodes.len(), "node"),
        number(cluster.pods.values().filter(|pod| pod.has_proxy()).count(), "proxy pod"),
    );
    let of = |severity: Severity, word: &str| {
        let length = found.iter().filter(|finding| finding.severity == severity).count();
        (length > 0).then(|| number(length, word))
    };
    let counts: Vec<String> =
        [of(Severity::Error, "error"), of(Severity::Warning, "warning"), of(Severity::Note, "note")]
            .into_iter()
            .flatten()
            .collect();
    let counts = if counts.is_empty() { "no faults found".to_owned() } else { counts.join(", ") };
    format!("{counts}; examined {examined}")
}
