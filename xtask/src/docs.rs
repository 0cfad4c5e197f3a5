//! Checks the README and the docs: links resolve, commands exist and name their check, metrics are
//! exported, figures have a source, lines are short enough. `cargo xtask lint` runs it;
//! `docs/writing.md` describes it for authors.
//!
//! The submodules work on text only. This module reads the files and runs the programs' `--help`.

mod commands;
mod figures;
mod help;
mod identifiers;
mod links;
mod markdown;
mod metrics;
mod rights;
mod width;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fmt, fs, io};

use serde::Deserialize;
use thiserror::Error;

use self::commands::Tests;
use self::figures::Measured;
use self::help::{Asker, Program};
use self::identifiers::Code;
use self::markdown::{Page, Piece};
use crate::process::{self, ProcessError};
use crate::workspace::Workspace;

#[cfg(test)]
mod tests;

/// The directory of alerts and dashboard, which mention metrics and headings.
const MONITORING: &str = "docs/monitoring";

/// The reference of the API.
const REFERENCE: &str = "docs/api.md";

/// The address of the pages, for links from outside the repository.
const PAGES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/");

/// The page with the permissions of each account, and the directories whose manifests grant them.
const RIGHTS: &str = "docs/security.md";
const GRANTING: [&str; 3] = ["manifests/agent/", "manifests/base/", "manifests/webhook/"];

/// A wrong statement in the docs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    path: String,
    line: usize,
    what: String,
}

impl Problem {
    fn at(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, what } = self;
        write!(out, "{path}:{line}: {what}")
    }
}

/// Why the docs could not be checked, or what is wrong in them.
#[derive(Debug, Error)]
pub(crate) enum DocsError {
    #[error("cannot read {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("cannot parse {path}: {problem}")]
    Malformed { path: String, problem: String },
    #[error("cannot read a program's --help")]
    Help(#[from] ProcessError),
    #[error("{} problems in the docs:\n  {}", .0.len(), .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  "))]
    Wrong(Vec<Problem>),
}

/// The files of the repository to check, by path.
struct Files {
    root: PathBuf,
    pages: BTreeMap<String, Page>,
    /// The text of the pages and of the files in [`MONITORING`].
    texts: BTreeMap<String, String>,
    /// Rust sources, by path.
    sources: BTreeMap<String, String>,
    measured: BTreeMap<String, Measured>,
    /// The documents in [`GRANTING`].
    manifests: Vec<serde_yaml::Value>,
}

/// Fails if the docs contain a wrong statement.
pub(crate) fn check(workspace: &Workspace) -> Result<(), DocsError> {
    let files = Files::read(&workspace.root)?;
    let crates = workspace.packages.iter().map(|package| package.name.replace('-', "_")).collect();
    let mut problems = files.find_problems(&crates);
    // Builds the programs only if the fast checks pass.
    if problems.is_empty() {
        problems = check_command_lines(workspace, &files)?;
    }
    if problems.is_empty() { Ok(()) } else { Err(DocsError::Wrong(problems)) }
}

impl Files {
    fn read(root: &Path) -> Result<Self, DocsError> {
        let (mut texts, mut sources) = (BTreeMap::new(), BTreeMap::new());
        let (mut measured, mut manifests) = (BTreeMap::new(), Vec::new());
        for path in list(root, "")? {
            let ending = Path::new(&path).extension().and_then(|ending| ending.to_str());
            let file = root.join(&path);
            let read =
                || fs::read_to_string(&file).map_err(|source| DocsError::File { path: file.clone(), source });
            let malformed = |error: serde_yaml::Error| DocsError::Malformed {
                path: path.clone(),
                problem: error.to_string(),
            };
            match ending {
                Some("yaml") if GRANTING.iter().any(|directory| path.starts_with(directory)) => {
                    for document in serde_yaml::Deserializer::from_str(&read()?) {
                        manifests.push(serde_yaml::Value::deserialize(document).map_err(malformed)?);
                    }
                }
                Some("rs") => drop(sources.insert(path.clone(), read()?)),
                Some("yaml") if path.starts_with(figures::DIRECTORY) => {
                    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                    let content = serde_yaml::from_str(&read()?).map_err(malformed)?;
                    measured.insert(name, content);
                }
                Some("md") => drop(texts.insert(path.clone(), read()?)),
                Some("yaml" | "json") if path.starts_with(MONITORING) => {
                    let text = read()?;
                    // JSON is valid YAML.
                    let _: serde_yaml::Value = serde_yaml::from_str(&text).map_err(malformed)?;
                    texts.insert(path.clone(), text);
                }
                _ => {}
            }
        }
        let pages =
            texts.iter().filter(|(path, _)| Path::new(path).extension().is_some_and(|ending| ending == "md"));
        let pages = pages.map(|(path, text)| (path.clone(), Page::read(path, text))).collect();
        Ok(Self { root: root.to_owned(), pages, texts, sources, measured, manifests })
    }

    fn exists(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// Runs all checks that need no program.
    fn find_problems(&self, crates: &BTreeSet<String>) -> Vec<Problem> {
        let exists = |path: &str| self.exists(path);
        let mut tests = Tests::new();
        for source in self.sources.values() {
            for name in test_names(source) {
                tests.entry(name).or_default().push(source);
            }
        }
        let mut problems = links::check(&self.pages, &exists);
        for page in self.pages.values() {
            problems.extend(commands::check_blocks(page, &tests));
            for command in commands::commands(page) {
                let missing = commands::missing_files(&command, &exists).into_iter();
                problems.extend(
                    missing.map(|path| Problem::at(&page.path, command.line, format!("there is no {path}"))),
                );
            }
            let unknown =
                page.spans.iter().filter(|span| is_sentence(&span.text) && !tests.contains_key(&span.text));
            problems.extend(
                unknown.map(|span| {
                    Problem::at(&page.path, span.line, format!("there is no test {}", span.text))
                }),
            );
        }
        problems.extend(self.check_identifiers(crates));
        problems.extend(figures::check(self.pages.values(), &self.measured));
        problems.extend(self.check_metrics(crates));
        problems.extend(self.check_runbooks());
        problems.extend(self.check_rights());
        problems.extend(self.check_width());
        problems
    }

    fn check_width(&self) -> Vec<Problem> {
        // The reference is generated, one paragraph a line.
        let pages = self.pages.keys().filter(|path| *path != REFERENCE);
        let pages = pages.filter_map(|path| Some((path, width::of_page(self.texts.get(path)?))));
        let sources = self.sources.iter().map(|(path, source)| (path, width::of_source(source)));
        let lines =
            pages.chain(sources).flat_map(|(path, wide)| wide.into_iter().map(move |wide| (path, wide)));
        lines.map(|(path, (line, what))| Problem::at(path, line, what)).collect()
    }

    /// Checks names of the code on pages and in comments. Names of tests have their own check.
    fn check_identifiers(&self, crates: &BTreeSet<String>) -> Vec<Problem> {
        let (code, exists) = (Code::read(self.sources.values()), |path: &str| self.exists(path));
        let mut problems = Vec::new();
        let mut check = |path: &str, span: &Piece| {
            let fault = code.find_fault(&span.text, crates, &exists).filter(|_| !is_sentence(&span.text));
            problems.extend(fault.map(|what| Problem::at(path, span.line, what)));
        };
        for page in self.pages.values() {
            for span in &page.spans {
                check(&page.path, span);
            }
        }
        for (path, source) in &self.sources {
            for span in identifiers::spans(source) {
                check(path, &span);
            }
        }
        problems
    }

    fn check_metrics(&self, crates: &BTreeSet<String>) -> Vec<Problem> {
        // Tests contain sample sources, which register no real metrics.
        let is_test = |path: &str| path.split('/').any(|part| ["tests", "tests.rs"].contains(&part));
        let sources = self.sources.iter().filter(|(path, _)| !is_test(path));
        let metrics: Vec<_> = sources.flat_map(|(_, source)| metrics::registered(source)).collect();
        let mut problems = Vec::new();
        let mut named = BTreeSet::new();
        for (path, text) in &self.texts {
            for (index, line) in text.lines().enumerate() {
                let here = metrics::named(line, crates);
                for name in metrics::unknown(&here, &metrics) {
                    problems.push(Problem::at(path, index + 1, format!("no program exports {name}")));
                }
                if self.pages.contains_key(path) {
                    named.extend(here);
                }
            }
        }
        for name in metrics::undocumented(&named, &metrics) {
            problems.push(Problem::at("docs", 1, format!("{name} is exported, but no page documents it")));
        }
        problems
    }

    fn check_rights(&self) -> Vec<Problem> {
        let text = self.texts.get(RIGHTS).map(String::as_str).unwrap_or_default();
        let different = rights::compare(text, &rights::granted(&self.manifests)).into_iter();
        different.map(|(line, what)| Problem::at(RIGHTS, line, what)).collect()
    }

    /// Checks the runbook links of alerts: `runbook_url`, a page of this repository with a heading.
    fn check_runbooks(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (path, text) in self.texts.iter().filter(|(path, _)| path.starts_with(MONITORING)) {
            for (index, line) in text.lines().enumerate() {
                let Some(url) = line.trim_start().strip_prefix("runbook_url: ") else { continue };
                if let Err(what) = self.find_page(url) {
                    problems.push(Problem::at(path, index + 1, what));
                }
            }
        }
        problems
    }

    fn find_page(&self, url: &str) -> Result<(), String> {
        let target = url.strip_prefix(PAGES).ok_or_else(|| format!("{url} is not below {PAGES}"))?;
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        links::resolve(&self.pages, file, Some(anchor), &|path: &str| self.exists(path))
    }
}

/// Builds the project's programs and checks the documented commands against their `--help`.
fn check_command_lines(workspace: &Workspace, files: &Files) -> Result<Vec<Problem>, DocsError> {
    let mut cargo = process::cargo(&workspace.root);
    // This program exists already; building it would only relink it.
    process::run(cargo.args(["build", "--quiet", "--workspace", "--exclude", "xtask", "--bins"]))?;
    let mut asker = Asker::new(|program: Program, path: &[String]| {
        let mut command = Command::new(workspace.program(program.file));
        let printed = process::capture(command.args(path).arg("--help"))?;
        Ok::<_, ProcessError>(String::from_utf8_lossy(&printed).into_owned())
    });
    let mut problems = Vec::new();
    for page in files.pages.values() {
        for command in commands::commands(page) {
            let fault = asker.find_fault(&command.words)?;
            problems.extend(fault.map(|what| Problem::at(&page.path, command.line, what)));
        }
    }
    Ok(problems)
}

/// The names of the test functions in a source.
fn test_names(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim_start) {
        if line.starts_with("#[test") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some((_, rest)) = line.split_once("fn ").filter(|_| is_test) {
            names.extend(rest.split('(').next().map(str::to_owned));
            is_test = false;
        } else if !line.starts_with("#[") && !line.starts_with("//") {
            is_test = false;
        }
    }
    names
}

/// Whether a text is a sentence joined by underscores, like a test's name and unlike a metric's.
fn is_sentence(text: &str) -> bool {
    let letters = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
    let mut words = text.split('_');
    text.matches('_').count() >= 3
        && text.chars().all(letters)
        && words.any(|word| ["a", "an", "the", "its", "is", "and", "not", "that"].contains(&word))
}

/// The files below a directory, sorted, without build output, releases and hidden files.
fn list(root: &Path, directory: &str) -> Result<Vec<String>, DocsError> {
    let path = root.join(directory);
    let failed = |source| DocsError::File { path: path.clone(), source };
    let mut found = Vec::new();
    for entry in fs::read_dir(&path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if directory.is_empty() { name.clone() } else { format!("{directory}/{name}") };
        if name.starts_with('.') || name == "target" || path == "dist" {
            continue;
        }
        if entry.file_type().map_err(failed)?.is_dir() {
            found.extend(list(root, &path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
