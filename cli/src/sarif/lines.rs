//! The lines at which the objects of a file begin, for files as kubectl writes them: YAML or JSON,
//! a list or single documents. An object in another layout has no line.

use std::collections::BTreeMap;

use isp_plan::Key;

/// The first line of each object, counted from 1.
pub(super) struct Lines(BTreeMap<(String, Key), usize>);

/// The object that is being read.
#[derive(Default)]
struct Current {
    start: usize,
    /// The column of its fields.
    indent: usize,
    kind: String,
    name: String,
    namespace: String,
    /// Whether the fields of its metadata are read, and their column once it is known.
    in_metadata: bool,
    column: Option<usize>,
}

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        let mut found = BTreeMap::new();
        let mut current: Option<Current> = None;
        for (place, line) in text.lines().enumerate() {
            if let Some(indent) = starts(line, current.is_none()) {
                keep(current.take(), &mut found);
                current = Some(Current { start: place + 1, indent, ..Current::default() });
            }
            if let Some(current) = &mut current {
                current.read(line);
            }
        }
        keep(current, &mut found);
        Self(found)
    }

    pub(super) fn find(&self, kind: &str, key: &Key) -> Option<usize> {
        self.0.get(&(kind.to_owned(), key.clone())).copied()
    }
}

fn keep(current: Option<Current>, found: &mut BTreeMap<(String, Key), usize>) {
    let Some(Current { start, kind, name, namespace, .. }) = current else { return };
    if !kind.is_empty() && !name.is_empty() {
        found.entry((kind, Key::new(namespace, name))).or_insert(start);
    }
}

/// The column of the fields of the object that begins in this line.
fn starts(line: &str, is_first: bool) -> Option<usize> {
    match line {
        line if line.starts_with("- ") => Some(2),
        // An item of a list in JSON, as kubectl indents it.
        "        {" => Some(12),
        // A document of its own, in JSON.
        "{" => Some(4),
        "---" => Some(0),
        line => (is_first && !line.is_empty() && !line.starts_with('#')).then_some(0),
    }
}

impl Current {
    fn read(&mut self, line: &str) {
        let text = line.strip_prefix("- ").unwrap_or_else(|| line.trim_start());
        let column = line.len() - text.len();
        let Some((field, value)) = text.split_once(':') else { return };
        let clean = |text: &str| text.trim().trim_end_matches(',').trim_matches(['"', '\'']).to_owned();
        let field = clean(field);
        if column == self.indent {
            (self.in_metadata, self.column) = (field == "metadata", None);
            if field == "kind" {
                self.kind = clean(value);
            }
        } else if self.in_metadata {
            match (*self.column.get_or_insert(column) == column, field.as_str()) {
                (true, "name") => self.name = clean(value),
                (true, "namespace") => self.namespace = clean(value),
                _ => {}
            }
        }
    }
}
