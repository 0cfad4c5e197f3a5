//! Checks the commands in the docs: each block names its check, and the files it mentions exist.
//!
//! After its language, a block has `test=<function>`, a test that reads it from the page and runs
//! it, or `needs=<what>` from a short list, for commands that no test can run.

use std::collections::BTreeMap;

use super::Problem;
use super::markdown::{Block, Page};

#[cfg(test)]
mod tests;

/// The values of `needs=`, and why no test can run such a block.
const NEEDS: &[(&str, &str)] = &[
    ("cloud", "a provider's account"),
    ("release", "images or programs that have been published"),
    ("machine", "root and a machine for itself: it is what runs the tests, or builds for half an hour"),
];

/// Directories of the repository that commands mention.
const DIRECTORIES: &[&str] = &["manifests/", "crds/", "docs/"];

/// A command on a page, split into words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) line: usize,
    pub(super) words: Vec<String>,
}

fn is_commands(block: &Block) -> bool {
    ["sh", "console"].contains(&block.language.as_str())
}

/// The sources that contain a test, by its name.
pub(super) type Tests<'a> = BTreeMap<String, Vec<&'a str>>;

/// Finds blocks that name no check, or one that does not exist.
pub(super) fn check_blocks(page: &Page, tests: &Tests<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for block in &page.blocks {
        let what = match (block.language.as_str(), block.notes.as_slice()) {
            ("", _) => Some("the block has no language; use text if there is none".to_owned()),
            ("bash" | "shell" | "zsh", _) => Some("use sh or console for commands".to_owned()),
            ("sh" | "console", [note]) => find_fault(&page.path, note, tests),
            ("sh" | "console", _) => {
                Some("a block of commands needs one of test=<function> and needs=<what>".to_owned())
            }
            _ => None,
        };
        problems.extend(what.map(|what| Problem::at(&page.path, block.line, what)));
    }
    problems
}

fn find_fault(page: &str, note: &str, tests: &Tests<'_>) -> Option<String> {
    let known: Vec<_> = NEEDS.iter().map(|(need, _)| *need).collect();
    match note.split_once('=') {
        Some(("test", name)) => match tests.get(name) {
            None => Some(format!("there is no test {name}")),
            Some(sources) if sources.iter().any(|source| takes(source, page, name)) => None,
            Some(_) => Some(format!(
                "the test {name} does not read its commands from this page: its source does not contain \"{page}\" or its own name"
            )),
        },
        Some(("needs", need)) if known.contains(&need) => None,
        _ => Some(format!("{note} is neither test=<function> nor needs=<one of {}>", known.join(", "))),
    }
}

/// Whether a source contains the arguments of an `isp_lab::docs::commands` call for this page and
/// test. That function returns all blocks of a page that name the test, or fails.
fn takes(source: &str, page: &str, test: &str) -> bool {
    [page, test].iter().all(|text| source.contains(&format!("\"{text}\"")))
}

/// The commands of a page: in blocks, and between backticks.
pub(super) fn commands(page: &Page) -> Vec<Command> {
    let mut all = Vec::new();
    for block in page.blocks.iter().filter(|block| is_commands(block)) {
        let mut command: Option<(usize, String)> = None;
        for (index, line) in block.lines.iter().enumerate() {
            let text = match (block.language.as_str(), line.strip_prefix("$ ")) {
                ("console", Some(text)) => text,
                // Output, not a command.
                ("console", None) if command.is_none() => continue,
                _ => line,
            };
            let (at, mut whole) = command.take().unwrap_or((block.line + index + 1, String::new()));
            whole.push_str(text.strip_suffix('\\').unwrap_or(text));
            if text.ends_with('\\') {
                command = Some((at, whole));
            } else {
                all.extend(split(at, &whole));
            }
        }
    }
    for span in &page.spans {
        // Brackets mark optional parts.
        all.extend(split(span.line, &span.text.replace(['[', ']'], "")));
    }
    all
}

/// Splits a line into commands and words. A quoted text is one word; `#` starts a comment.
fn split(line: usize, text: &str) -> Vec<Command> {
    let mut commands = vec![Command { line, words: Vec::new() }];
    let mut word = String::new();
    let mut quote: Option<char> = None;
    for letter in text.chars().chain([' ']) {
        match (letter, quote) {
            ('\'' | '"', None) => quote = Some(letter),
            (letter, Some(open)) if letter == open => quote = None,
            (letter, None) if letter.is_whitespace() => match std::mem::take(&mut word).as_str() {
                "" => {}
                "#" => break,
                "|" | "&&" | "||" | ";" => commands.push(Command { line, words: Vec::new() }),
                whole => {
                    if let Some(last) = commands.last_mut() {
                        last.words.push(whole.to_owned());
                    }
                }
            },
            (letter, _) => word.push(letter),
        }
    }
    commands.retain(|command| !command.words.is_empty());
    commands
}

/// The repository files that a command mentions and that do not exist.
pub(super) fn missing_files(command: &Command, exists: &impl Fn(&str) -> bool) -> Vec<String> {
    let paths = command.words.iter().filter(|word| {
        DIRECTORIES.iter().any(|directory| word.starts_with(directory))
            && !word.contains(['*', '{', '<', '…'])
    });
    let path_of = |word: &String| word.split('#').next().unwrap_or_default().trim_end_matches('/').to_owned();
    paths.map(path_of).filter(|path| !exists(path)).collect()
}
