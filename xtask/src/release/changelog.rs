//! Reads CHANGELOG.md, which has the form of keepachangelog.com: a section for each version, and in
//! it one for each kind of change.

use thiserror::Error;

#[cfg(test)]
mod tests;

const UNRELEASED: &str = "Unreleased";

/// The kinds of changes, as headings.
const KINDS: [&str; 6] = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];

/// The changes of one version.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// Whether the changelog still calls these changes unreleased.
    pub(super) unreleased: bool,
    /// The text below the heading.
    pub(super) text: String,
    pub(super) changes: Vec<Change>,
}

/// One entry.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// In lower case, as Artifact Hub wants it.
    pub(super) kind: String,
    pub(super) description: String,
}

/// What is wrong in the changelog.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum ChangelogError {
    #[error("CHANGELOG.md has neither a section [{0}] nor [{UNRELEASED}]; add one")]
    NoSection(String),
    #[error("CHANGELOG.md has no entry for {0}; list its changes below a heading such as ### Added")]
    NoChange(String),
    #[error("CHANGELOG.md has the heading {heading:?}; use one of {}", KINDS.join(", "))]
    Kind { heading: String },
}

/// The section of a version; without one, that of the unreleased changes.
pub(super) fn section(changelog: &str, version: &str) -> Result<Section, ChangelogError> {
    let of_version = below(changelog, version);
    let unreleased = of_version.is_none();
    let text = of_version
        .or_else(|| below(changelog, UNRELEASED))
        .ok_or_else(|| ChangelogError::NoSection(version.to_owned()))?;
    let changes = changes(&text)?;
    if changes.is_empty() {
        return Err(ChangelogError::NoChange(version.to_owned()));
    }
    Ok(Section { unreleased, text, changes })
}

/// The text below a heading such as `## [0.1.0] - 2026-01-31`.
fn below(changelog: &str, name: &str) -> Option<String> {
    let heading = format!("## [{name}]");
    let mut lines = changelog.lines().skip_while(|line| !line.starts_with(&heading));
    lines.next()?;
    let text: Vec<&str> = lines.take_while(|line| !line.starts_with("## ")).collect();
    Some(text.join("\n").trim().to_owned())
}

/// The entries, each on one line.
fn changes(text: &str) -> Result<Vec<Change>, ChangelogError> {
    let mut changes: Vec<Change> = Vec::new();
    let mut kind = String::new();
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            if !KINDS.contains(&heading) {
                return Err(ChangelogError::Kind { heading: heading.to_owned() });
            }
            kind = heading.to_lowercase();
        } else if let Some(entry) = line.strip_prefix("- ") {
            changes.push(Change { kind: kind.clone(), description: entry.to_owned() });
        } else if let Some((more, last)) = line.strip_prefix("  ").zip(changes.last_mut()) {
            last.description.push(' ');
            last.description.push_str(more.trim());
        }
    }
    Ok(changes)
}
