//! Dumps: files that `kubectl get -o yaml` or `-o json` has written. This module knows files,
//! documents and lists. `doctor` and `plan` know which kinds they take, and what is missing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::CommandError;
use crate::progress;

/// An object of a dump.
pub(crate) struct Dumped<'a> {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) value: Value,
    /// The file, for people.
    pub(crate) file: &'a str,
    text: &'a str,
}

impl Dumped<'_> {
    /// The API group; empty for the core group.
    pub(crate) fn group(&self) -> &str {
        self.api_version.rsplit_once('/').map_or("", |(group, _)| group)
    }

    /// The error for an object that cannot be parsed, with file, name and line.
    pub(crate) fn problem(&self, name: &str, problem: &serde_json::Error) -> CommandError {
        let (file, kind, near) = (self.file, &self.kind, near(self.text, name));
        CommandError::Document { place: format!("{file}, {kind} {name}{near}"), problem: problem.to_string() }
    }

    /// Its name.
    pub(crate) fn name(&self) -> String {
        self.value["metadata"]["name"].as_str().unwrap_or_default().to_owned()
    }

    /// Its namespace; empty for an object of the cluster.
    pub(crate) fn namespace(&self) -> String {
        self.value["metadata"]["namespace"].as_str().unwrap_or_default().to_owned()
    }

    /// The object as its type.
    pub(crate) fn parse<T: DeserializeOwned>(&mut self) -> Result<T, CommandError> {
        let name = self.name();
        serde_json::from_value(self.value.take()).map_err(|problem| self.problem(&name, &problem))
    }
}

/// Calls `take` for every object, each once. Returns the time of the dump: the latest timestamp in
/// it. `help` is the command that shows how to take a dump.
pub(crate) fn each(
    path: &Path,
    help: &str,
    take: impl FnMut(Dumped<'_>) -> Result<(), CommandError>,
) -> Result<Timestamp, CommandError> {
    let mut files = Vec::new();
    collect(path, &mut files)?;
    let mut reader = Reader { take, seen: BTreeSet::new(), latest: None, documents: 0 };
    for file in &files {
        progress::show(format!("reading {}", file.display()));
        let text = std::fs::read_to_string(file)
            .map_err(|source| CommandError::File { path: file.clone(), source })?;
        reader.file(&file.display().to_string(), &text)?;
    }
    if reader.documents == 0 {
        return Err(CommandError::Document {
            place: path.display().to_string(),
            problem: format!("there is no object in it; `{help}` shows how to take a dump"),
        });
    }
    Ok(reader.latest.unwrap_or_else(Timestamp::now))
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

struct Reader<F> {
    take: F,
    /// An object may be in several files.
    seen: BTreeSet<[String; 4]>,
    latest: Option<Timestamp>,
    documents: usize,
}

impl<F: FnMut(Dumped<'_>) -> Result<(), CommandError>> Reader<F> {
    fn file(&mut self, file: &str, text: &str) -> Result<(), CommandError> {
        for document in serde_yaml::Deserializer::from_str(text) {
            let value = Value::deserialize(document).map_err(|problem| CommandError::Document {
                place: file.to_owned(),
                problem: problem.to_string(),
            })?;
            if !value.is_null() {
                self.documents += 1;
                self.note_times(&value);
                self.document(file, text, value)?;
            }
        }
        Ok(())
    }

    /// An object or a list. Objects of a typed list do not have a kind.
    fn document(&mut self, file: &str, text: &str, mut value: Value) -> Result<(), CommandError> {
        let word = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (word(&value, "apiVersion"), word(&value, "kind"));
        let Some(of) = kind.strip_suffix("List").filter(|_| value["items"].is_array()) else {
            return self.object(Dumped { api_version, kind, value, file, text });
        };
        let Value::Array(items) = value["items"].take() else { return Ok(()) };
        for value in items {
            let own = (word(&value, "apiVersion"), word(&value, "kind"));
            let (api_version, kind) =
                if own.1.is_empty() { (api_version.clone(), of.to_owned()) } else { own };
            self.object(Dumped { api_version, kind, value, file, text })?;
        }
        Ok(())
    }

    fn object(&mut self, object: Dumped<'_>) -> Result<(), CommandError> {
        let identity = [object.api_version.clone(), object.kind.clone(), object.namespace(), object.name()];
        // Documents of discovery have no name.
        let is_new = object.name().is_empty() || self.seen.insert(identity);
        if is_new { (self.take)(object) } else { Ok(()) }
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
