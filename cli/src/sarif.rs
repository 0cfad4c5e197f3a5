//! SARIF 2.1.0, the format of code scanners, for findings of `check` and `doctor`. Each code is a
//! rule, with its section of the runbook as help. A finding about a dump names the file and the
//! line of the object.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use isp_plan::Key;
use serde_json::{Value, json};

use self::lines::Lines;
use crate::doctor::cluster::Cluster;
use crate::doctor::finding::{Code, Severity, Subject};
use crate::doctor::kinds::Kind;
use crate::doctor::runbook;

mod lines;

#[cfg(test)]
mod tests;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// A finding to report.
pub(crate) struct Finding {
    pub(crate) code: Code,
    pub(crate) severity: Severity,
    pub(crate) subject: Subject,
    pub(crate) message: String,
}

/// The log of one run.
pub(crate) fn log(cluster: &Cluster, findings: &[Finding]) -> Value {
    let codes: BTreeSet<Code> = findings.iter().map(|finding| finding.code).collect();
    let places: BTreeMap<Code, usize> =
        codes.iter().enumerate().map(|(place, code)| (*code, place)).collect();
    let mut files = Files { cluster, read: BTreeMap::new() };
    let results: Vec<Value> = findings.iter().map(|finding| result(&mut files, &places, finding)).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "kubectl-isp",
                "version": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": codes.into_iter().map(rule).collect::<Vec<Value>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

fn rule(code: Code) -> Value {
    let section = runbook::section(code);
    let first = section.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    json!({
        "id": code.as_str(),
        "name": format!("{code:?}"),
        "shortDescription": {"text": code.title()},
        "fullDescription": {"text": first},
        "help": {"text": section, "markdown": section},
        "helpUri": runbook::address(code),
        "defaultConfiguration": {"level": level(code.severity())},
    })
}

fn result(files: &mut Files<'_>, places: &BTreeMap<Code, usize>, finding: &Finding) -> Value {
    let Finding { code, severity, subject, message } = finding;
    let name = if subject.name().is_empty() { subject.kind() } else { subject.name() };
    let mut location = json!({"logicalLocations": [{
        "name": name,
        "fullyQualifiedName": subject.to_string(),
        "kind": "resource",
    }]});
    if let Some(physical) = files.location(subject) {
        location["physicalLocation"] = physical;
    }
    json!({
        "ruleId": code.as_str(),
        "ruleIndex": places.get(code),
        "level": level(*severity),
        "message": {"text": message},
        "locations": [location],
        // The same fault of the same object, whatever the words are.
        "partialFingerprints": {"codeAndObject/v1": format!("{} {subject}", code.as_str())},
    })
}

/// The files of a dump. Those with a finding are read again, for the lines.
struct Files<'a> {
    cluster: &'a Cluster,
    read: BTreeMap<usize, Lines>,
}

impl Files<'_> {
    fn location(&mut self, subject: &Subject) -> Option<Value> {
        let (namespace, name) = subject.name().split_once('/').unwrap_or(("", subject.name()));
        let key = Key::new(namespace, name);
        let mut kinds = Kind::ALL.into_iter().filter(|kind| kind.as_str() == subject.kind());
        let place = *kinds.find_map(|kind| self.cluster.origins.get(&(kind, key.clone())))?;
        let path = self.cluster.files.get(place)?;
        let lines = self.read.entry(place).or_insert_with(|| {
            // Without the file there is no line, and the name of the file is still of use.
            Lines::of(&std::fs::read_to_string(path).unwrap_or_default())
        });
        let mut location = json!({"artifactLocation": {"uri": uri(path)}});
        if let Some(line) = lines.find(subject.kind(), &key) {
            location["region"] = json!({"startLine": line});
        }
        Some(location)
    }
}

/// A relative path stays relative to the working directory.
fn uri(path: &Path) -> String {
    let text = path.to_string_lossy();
    let scheme = if path.is_absolute() { "file://" } else { "" };
    let mut uri = scheme.to_owned();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            other => uri.extend(["%", &format!("{other:02X}")]),
        }
    }
    uri
}
