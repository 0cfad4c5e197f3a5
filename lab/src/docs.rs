//! The command blocks of the docs, verbatim, for the tests that run them.
//!
//! A block has `test=<function>` after its language. That test gets the block from here, by the
//! path of the page, and runs it in a [`Terminal`], so every documented command has been run.
//! `cargo xtask lint` checks these notes; this module only reads them.

mod terminal;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

pub use self::terminal::Terminal;
use crate::command::{CommandError, Output};
use crate::provision::ProvisionError;

const FENCE: &str = "```";

/// A page could not be used, or its commands failed.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum DocsError {
    #[error("cannot access {}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("{test} expects {wanted} blocks in {page}, but these blocks name it: {found:?}")]
    Count { page: String, test: String, wanted: usize, found: Vec<String> },
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error(transparent)]
    Provision(#[from] ProvisionError),
    #[error("{block}ended with {:?}\n{}{}", output.code, output.stdout, output.stderr)]
    Failed { block: Box<Block>, output: Box<Output> },
    #[error("{block}did not finish within {} s", deadline.as_secs())]
    Endless { block: Box<Block>, deadline: Duration },
}

/// A fenced block of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    page: String,
    /// The line of the opening fence, counted from one.
    line: usize,
    language: String,
    /// The words after the language.
    notes: Vec<String>,
    text: String,
}

impl fmt::Display for Block {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:\n{}", self.page, self.line, self.text)
    }
}

impl Block {
    /// Commands that are on no page, for tests of a [`Terminal`].
    pub fn of_no_page(commands: &str) -> Self {
        let text = format!("{commands}\n");
        Self { page: "no page".to_owned(), line: 1, language: "sh".to_owned(), notes: Vec::new(), text }
    }

    /// The text between the fences.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The commands: in a `console` block the lines that start with `$`, else everything.
    pub fn commands(&self) -> String {
        if self.language == "console" { self.console().0 } else { self.text.clone() }
    }

    /// The same block with arguments appended to its last command, for options that only a test
    /// needs.
    #[must_use]
    pub fn with(&self, words: &str) -> Self {
        Self { text: format!("{} {words}\n", self.text.trim_end()), ..self.clone() }
    }

    /// The output that a `console` block shows.
    pub fn printed(&self) -> String {
        self.console().1
    }

    /// The words of each command. Does not handle quotes or line continuations; a [`Terminal`]
    /// does.
    pub fn words(&self) -> Vec<Vec<String>> {
        let commands = self.commands();
        let words = |line: &str| {
            let words = line.split_whitespace().take_while(|word| !word.starts_with('#'));
            words.map(str::to_owned).collect()
        };
        commands.lines().map(words).filter(|words: &Vec<_>| !words.is_empty()).collect()
    }

    fn console(&self) -> (String, String) {
        let (mut typed, mut printed) = (String::new(), String::new());
        let mut goes_on = false;
        for line in self.text.lines() {
            let command = line.strip_prefix("$ ").or(goes_on.then_some(line));
            goes_on = command.is_some_and(|command| command.ends_with('\\'));
            let to = if command.is_some() { &mut typed } else { &mut printed };
            to.push_str(command.unwrap_or(line));
            to.push('\n');
        }
        (typed, printed)
    }
}

/// The blocks of a page that name a test, in order. Fails unless there are exactly `N`, so that
/// none is skipped.
pub fn commands<const N: usize>(page: &str, test: &str) -> Result<[Block; N], DocsError> {
    let note = format!("test={test}");
    let blocks: Vec<_> = blocks(page)?.into_iter().filter(|block| block.notes.contains(&note)).collect();
    blocks.try_into().map_err(|blocks: Vec<Block>| DocsError::Count {
        page: page.to_owned(),
        test: test.to_owned(),
        wanted: N,
        found: blocks.iter().map(|block| format!("line {}", block.line)).collect(),
    })
}

/// The text of all blocks of a page in a language, in order.
pub fn examples(page: &str, language: &str) -> Result<Vec<String>, DocsError> {
    let blocks = blocks(page)?.into_iter().filter(|block| block.language == language);
    Ok(blocks.map(|block| block.text).collect())
}

fn blocks(page: &str) -> Result<Vec<Block>, DocsError> {
    let path = repository().join(page);
    let text = fs::read_to_string(&path).map_err(|source| DocsError::File { path, source })?;
    Ok(read(page, &text))
}

fn repository() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own)
}

fn read(page: &str, text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in text.lines().enumerate() {
        if let Some(info) = line.trim_start().strip_prefix(FENCE) {
            match open.take() {
                Some(block) => blocks.push(block),
                None => open = Some(opened(page, index + 1, info)),
            }
        } else if let Some(block) = &mut open {
            block.text.push_str(line);
            block.text.push('\n');
        }
    }
    blocks
}

fn opened(page: &str, line: usize, info: &str) -> Block {
    let mut words = info.split_whitespace().map(str::to_owned);
    let language = words.next().unwrap_or_default();
    Block { page: page.to_owned(), line, language, notes: words.collect(), text: String::new() }
}
