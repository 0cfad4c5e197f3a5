//! The facts of a dump: files written by `kubectl get -o yaml` or `-o json`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use isp_plan::Key;
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::cluster::{Cluster, Missing, Pod};
use super::kinds::Kind;
use crate::error::CommandError;

#[cfg(test)]
mod tests;

/// The facts, and their time: the latest timestamp in the dump.
pub(crate) fn read(path: &Path) -> Result<(Cluster, Timestamp), CommandError> {
    let mut files = Vec::new();
    collect(path, &mut files)?;
    let mut dump = Dump::default();
    for file in &files {
        let text = std::fs::read_to_string(file)
            .map_err(|source| CommandError::File { path: file.clone(), source })?;
        dump.cluster.files.push(file.clone());
        dump.take(&file.display().to_string(), &text)?;
    }
    if dump.documents == 0 {
        return Err(CommandError::Document {
            place: path.display().to_string(),
            problem: "there is no object in it; `kubectl isp doctor --help` shows how to take a dump"
                .to_owned(),
        });
    }
    Ok(dump.end())
}

/// The files of a directory and its subdirectories by name, or the one file.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), CommandError> {
    let failed = |source| CommandError::File { path: path.to_owned(), source };
    if !std::fs::metadata(path).map_err(failed)?.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let mut entries: Vec<PathBuf> = std::fs::read_dir(path)
        .map_err(failed)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    entries.sort();
    for entry in entries {
        let named =
            entry.extension().is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known));
        // A symbolic link to a parent would never end.
        if entry.is_dir() && !entry.is_symlink() || named && !entry.is_dir() {
            collect(&entry, files)?;
        }
    }
    Ok(())
}

#[derive(Default)]
struct Dump {
    cluster: Cluster,
    /// An object may be in several files.
    seen: BTreeSet<(Kind, String, String)>,
    latest: Option<Timestamp>,
    documents: usize,
}

impl Dump {
    fn take(&mut self, file: &str, text: &str) -> Result<(), CommandError> {
        for document in serde_yaml::Deserializer::from_str(text) {
            let value = Value::deserialize(document).map_err(|problem| CommandError::Document {
                place: file.to_owned(),
                problem: problem.to_string(),
            })?;
            if !value.is_null() {
                self.documents += 1;
                self.note_times(&value);
                self.take_document(file, text, value)?;
            }
        }
        Ok(())
    }

    /// An object or a list. Objects of a typed list do not have a kind.
    fn take_document(&mut self, file: &str, text: &str, mut value: Value) -> Result<(), CommandError> {
        let word = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
        let (version, kind) = (word(&value, "apiVersion"), word(&value, "kind"));
        // The output of `kubectl version -o yaml` has no kind.
        if let Some(version) = value["serverVersion"]["gitVersion"].as_str().filter(|_| kind.is_empty()) {
            self.cluster.version = Some(version.to_owned());
        }
        let Some(of) = kind.strip_suffix("List").filter(|_| value["items"].is_array()) else {
            return match Kind::of(&version, &kind) {
                Some(kind) => self.take_object(file, text, kind, value),
                None => Ok(()),
            };
        };
        let Value::Array(items) = value["items"].take() else { return Ok(()) };
        for item in items {
            let own = (word(&item, "apiVersion"), word(&item, "kind"));
            let kind = if own.1.is_empty() { Kind::of(&version, of) } else { Kind::of(&own.0, &own.1) };
            if let Some(kind) = kind {
                self.take_object(file, text, kind, item)?;
            }
        }
        Ok(())
    }

    fn take_object(&mut self, file: &str, text: &str, kind: Kind, value: Value) -> Result<(), CommandError> {
        let field = |name: &str| value["metadata"][name].as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (field("namespace"), field("name"));
        if !self.seen.insert((kind, namespace.clone(), name.clone())) {
            return Ok(());
        }
        let place = self.cluster.files.len().saturating_sub(1);
        self.cluster.origins.insert((kind, Key::new(namespace, name.clone())), place);
        self.cluster.take(kind, value).map_err(|problem| CommandError::Document {
            place: format!("{file}, {} {name}{}", kind.as_str(), near(text, &name)),
            problem: problem.to_string(),
        })
    }

    fn note_times(&mut self, value: &Value) {
        const TIMES: [&str; 4] =
            ["creationTimestamp", "lastTransitionTime", "lastHeartbeatTime", "lastUpdateTime"];
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let time = value.as_str().filter(|_| TIMES.contains(&name.as_str()));
                    self.latest = self.latest.max(time.and_then(|text| text.parse().ok()));
                    self.note_times(value);
                }
            }
            Value::Array(values) => values.iter().for_each(|value| self.note_times(value)),
            _ => {}
        }
    }

    fn end(mut self) -> (Cluster, Timestamp) {
        let missing = Kind::ALL.into_iter().filter(|kind| kind.is_everywhere());
        for kind in missing.filter(|kind| !self.cluster.looked_at.contains(kind)) {
            self.cluster.not_looked_at.insert(kind, Missing::NotInDump);
        }
        let policies = Kind::AuthorizationPolicy;
        if !self.cluster.knows(policies) && self.cluster.pods.values().any(Pod::is_in_mesh) {
            self.cluster.not_looked_at.insert(policies, Missing::PerhapsNotInDump);
        }
        (self.cluster, self.latest.unwrap_or_else(Timestamp::now))
    }
}

/// The line of an object of this name, as far as the text shows it.
fn near(text: &str, name: &str) -> String {
    let lines = text.lines().enumerate();
    let mut named = lines.filter(|(_, line)| {
        let line = line.trim().trim_start_matches("- ").trim_end_matches(',');
        let value = line.strip_prefix("name:").or_else(|| line.strip_prefix("\"name\":"));
        value.is_some_and(|value| value.trim().trim_matches('"') == name)
    });
    named.next().map(|(place, _)| format!(" (line {})", place + 1)).unwrap_or_default()
}
