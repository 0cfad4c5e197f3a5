//! What is printed: a block for each finding, not too many of one code, and a line at the end.

use super::cluster::Cluster;
use super::finding::{Finding, Severity};
use super::kinds::Kind;
use crate::text::{Block, count, cut};

/// How many findings of one code and severity are told whole.
const WHOLE: usize = 10;
/// How many characters of a line are shown.
const LONGEST: usize = 2000;
/// How many of the others are named.
const NAMED: usize = 5;

/// The findings are in their order: those of one severity and code follow each other.
pub(super) fn text(cluster: &Cluster, found: &[Finding]) -> String {
    let mut text = String::new();
    for alike in found.chunk_by(|a, b| (a.severity, a.code) == (b.severity, b.code)) {
        let (whole, others) = alike.split_at(alike.len().min(WHOLE));
        for finding in whole {
            text.push_str(&block(finding));
            text.push('\n');
        }
        if let Some(first) = others.first() {
            let names: Vec<String> =
                others.iter().map(|finding| plain(&finding.subject.to_string())).collect();
            let names = cut(names, NAMED, " (-o json lists all)").join(", ");
            let (severity, code) = (first.severity.as_str(), first.code.as_str());
            let number = others.len();
            text.extend([&format!("{severity} {code}  the same of {number} more: {names}"), "\n\n"]);
        }
    }
    text.push_str(&summary(cluster, found));
    text
}

fn block(finding: &Finding) -> String {
    let Finding { code, severity, subject, line, reason, path, remedy, .. } = finding;
    let head = plain(&format!("{subject}: {line}"));
    let mut block = Block::headed(&format!("{} {}  {head}", severity.as_str(), code.as_str()));
    block.field("why", [plain(reason)]);
    block.field("path", path.iter().map(|hop| plain(hop)));
    block.field("to do", remedy.iter().map(|step| plain(step)));
    block.0
}

/// Words of the cluster's users on a terminal: in one line, without commands for the terminal, and not without an end.
fn plain(text: &str) -> String {
    let mut plain: String = text
        .chars()
        .map(|one| if one.is_control() { char::REPLACEMENT_CHARACTER } else { one })
        .take(LONGEST)
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        plain.push('…');
    }
    plain
}

fn number(length: usize, thing: &str) -> String {
    count(u64::try_from(length).unwrap_or(u64::MAX), thing)
}

fn summary(cluster: &Cluster, found: &[Finding]) -> String {
    let exposed = cluster.services.values().filter(|service| service.facts.exposed).count();
    let looked = format!(
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
    let counts = if counts.is_empty() { "nothing found".to_owned() } else { counts.join(", ") };
    format!("{counts}; looked at {looked}\n")
}
