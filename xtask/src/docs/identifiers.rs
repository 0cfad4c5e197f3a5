//! Checks names of the code between backticks, on pages and in the comments of the sources: files
//! exist, and identifiers occur in the code.
//!
//! An identifier here is a path with `::`, or a word with underscores. Other words may come from
//! Kubernetes or the kernel. Pure.

use std::collections::BTreeSet;

use super::markdown::Piece;

#[cfg(test)]
mod tests;

/// The code of all sources, without comments.
pub(super) struct Code<'a> {
    words: BTreeSet<&'a str>,
    /// The names of functions, types, constants and modules.
    declared: BTreeSet<&'a str>,
}

const DECLARES: [&str; 9] = ["const", "enum", "fn", "mod", "static", "struct", "trait", "type", "union"];

/// Directories of build output. They exist on some machines and are not part of the repository.
const OUTPUT: [&str; 2] = ["dist", "target"];

impl<'a> Code<'a> {
    pub(super) fn read(sources: impl Iterator<Item = &'a String>) -> Self {
        let (mut words, mut declared) = (BTreeSet::new(), BTreeSet::new());
        for line in sources.flat_map(|source| source.lines()).filter(|line| comment(line).is_none()) {
            let mut before = "";
            for word in line.split(|c: char| !is_word(c)).filter(|word| !word.is_empty()) {
                words.insert(word);
                if DECLARES.contains(&before) {
                    declared.insert(word);
                }
                before = word;
            }
        }
        Self { words, declared }
    }

    /// What is wrong with the text between two backticks, if it names a file or an identifier.
    pub(super) fn find_fault(
        &self,
        text: &str,
        crates: &BTreeSet<String>,
        exists: &impl Fn(&str) -> bool,
    ) -> Option<String> {
        let missing = || Some(format!("there is no {text}"));
        let path: Vec<&str> = text.split(['(', '<']).next().unwrap_or_default().split("::").collect();
        if !path.iter().all(|name| is_identifier(name)) {
            let is_file = |letter: char| is_word(letter) || "./-".contains(letter);
            let is_ours = |first: &str| !first.is_empty() && !OUTPUT.contains(&first) && exists(first);
            let is_missing = text.split_once('/').is_some_and(|(first, _)| is_ours(first))
                && text.chars().all(is_file)
                && !exists(text);
            return if is_missing { missing() } else { None };
        }
        let known = |name: &&str| self.words.contains(*name) || crates.contains(*name);
        match path.as_slice() {
            [name] if !name.contains('_') || is_metric(name) || known(name) => None,
            [krate, .., last] if crates.contains(*krate) && !self.declared.contains(last) => missing(),
            [_, _, ..] if path.iter().all(known) => None,
            _ => missing(),
        }
    }
}

fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// Whether a text is an identifier of Rust that is not a constant of another program.
fn is_identifier(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(is_word)
        && text.contains(|letter: char| letter.is_ascii_lowercase())
}

/// Whether a name is that of a metric, of ours, which have their own check, or of Kubernetes.
fn is_metric(name: &str) -> bool {
    name.starts_with("isp_")
        || ["_bytes", "_count", "_seconds", "_total"].iter().any(|end| name.ends_with(end))
}

/// The text of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("//")
}

/// The texts between backticks in the comments of a source. Each must be on one line.
pub(super) fn spans(source: &str) -> Vec<Piece> {
    let mut spans = Vec::new();
    let mut in_block = false;
    for (index, line) in source.lines().enumerate() {
        let Some(text) = comment(line) else { continue };
        in_block ^= text.contains("```");
        let parts: Vec<&str> = if in_block { Vec::new() } else { text.split('`').collect() };
        // An even number of backticks encloses every second part.
        let closed = parts.len() % 2 == 1;
        let inner = parts.into_iter().skip(1).step_by(2).filter(|_| closed);
        spans.extend(inner.map(|text| Piece { line: index + 1, text: text.to_owned() }));
    }
    spans
}
