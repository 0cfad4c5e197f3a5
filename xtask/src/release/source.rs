//! The commit that a release is made of. Everything in a release comes from it, so there must be
//! nothing else in the working tree.

use std::path::Path;
use std::process::Command;

use thiserror::Error;

use crate::process::{self, ProcessError};

/// How many changed files an error names.
const NAMED: usize = 5;

/// A commit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// The full object name.
    pub(super) commit: String,
    /// The committer's time, in seconds since 1970. Files in archives have this time.
    pub(super) seconds: u64,
    /// The same in RFC 3339.
    pub(super) time: String,
}

/// Why there is no such commit.
#[derive(Debug, Error)]
pub(crate) enum SourceError {
    #[error("cannot ask git for the commit of the release; run the command in a clone of the repository")]
    Git(#[from] ProcessError),
    #[error("git describes the commit as {0:?}; a name, seconds and a time were expected")]
    Malformed(String),
    #[error("a release is made of a commit, but the working tree has changes: {0}; commit or stash them")]
    Dirty(String),
}

impl Source {
    pub(super) fn read(root: &Path) -> Result<Self, SourceError> {
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            let printed = process::capture(git.current_dir(root).env("TZ", "UTC").args(arguments))?;
            Ok::<_, ProcessError>(String::from_utf8_lossy(&printed).into_owned())
        };
        if let Some(changed) = changed(&git(&["status", "--porcelain"])?) {
            return Err(SourceError::Dirty(changed));
        }
        let time = "--date=format-local:%Y-%m-%dT%H:%M:%SZ";
        Self::parse(&git(&["log", "-1", "--format=%H %ct %cd", time])?)
    }

    fn parse(line: &str) -> Result<Self, SourceError> {
        let malformed = || SourceError::Malformed(line.to_owned());
        let [commit, seconds, time] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err(malformed());
        };
        let seconds = seconds.parse().map_err(|_| malformed())?;
        Ok(Self { commit: commit.to_owned(), seconds, time: time.to_owned() })
    }
}

/// The changed files in the output of `git status --porcelain`, shortened.
fn changed(status: &str) -> Option<String> {
    let files: Vec<&str> = status.lines().filter_map(|line| line.get(3..)).collect();
    let named = files.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    match files.len() {
        0 => None,
        count if count > NAMED => Some(format!("{named} and {} more", count - NAMED)),
        _ => Some(named),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_has_a_name_and_a_time() {
        let source = Source::parse("0a1b 1794962443 2026-11-18T00:40:43Z\n").unwrap();
        assert_eq!((source.commit.as_str(), source.seconds), ("0a1b", 1_794_962_443));
        assert_eq!(source.time, "2026-11-18T00:40:43Z");
        assert!(matches!(Source::parse("0a1b then"), Err(SourceError::Malformed(_))));
    }

    #[test]
    fn changes_are_named_but_not_all_of_them() {
        assert_eq!(changed(""), None);
        assert_eq!(changed(" M a.rs\n?? b/\n").unwrap(), "a.rs, b/");
        assert_eq!(changed(&"A  a\n".repeat(8)).unwrap(), "a, a, a, a, a and 3 more");
        let error = SourceError::Dirty("a.rs".to_owned()).to_string();
        assert!(error.ends_with("has changes: a.rs; commit or stash them"), "{error}");
    }
}
