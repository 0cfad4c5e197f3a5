//! Checks commands against the programs' own `--help`.
//!
//! The definitions are in crates that this one does not depend on, so it parses the output of
//! `--help`, which clap formats uniformly.

use std::collections::{BTreeMap, BTreeSet};

#[cfg(test)]
mod tests;

/// The parsed output of `--help`.
#[derive(Debug, Default)]
pub(super) struct Help {
    commands: BTreeSet<String>,
    /// Long and short flags, with their dashes, and whether a value follows as a separate word.
    flags: BTreeMap<String, bool>,
}

impl Help {
    pub(super) fn read(text: &str) -> Self {
        let mut help = Self::default();
        let mut in_commands = false;
        for line in text.lines() {
            if !line.starts_with(' ') {
                in_commands = line == "Commands:";
            } else if in_commands && line.starts_with("  ") && !line.starts_with("   ") {
                help.commands.extend(line.split_whitespace().next().map(str::to_owned));
            } else if line.trim_start().starts_with('-') {
                let words: Vec<&str> =
                    line.split([' ', ',', '=', '[']).filter(|word| !word.is_empty()).collect();
                let flags = words.iter().take_while(|word| word.starts_with('-'));
                let takes_value = words.iter().any(|word| word.starts_with('<')) && !line.contains("[=");
                help.flags.extend(flags.map(|flag| ((*flag).to_owned(), takes_value)));
            }
        }
        help
    }
}

/// A program: the words that call it, and its file name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Program {
    words: &'static [&'static str],
    pub(super) file: &'static str,
}

/// Longer ones first: `cargo xtask lab` passes its arguments on.
const PROGRAMS: &[Program] = &[
    Program { words: &["cargo", "xtask", "lab"], file: "isp-lab" },
    Program { words: &["cargo", "xtask"], file: "xtask" },
    Program { words: &["kubectl", "isp"], file: "kubectl-isp" },
    Program { words: &["kubectl-isp"], file: "kubectl-isp" },
    Program { words: &["operator"], file: "operator" },
    Program { words: &["webhook"], file: "webhook" },
    Program { words: &["proxy-agent"], file: "proxy-agent" },
];

/// Runs `--help` and caches the results.
pub(super) struct Asker<F> {
    /// Returns the `--help` output of a program with these subcommands.
    ask: F,
    known: BTreeMap<(&'static str, Vec<String>), Help>,
}

impl<F, E> Asker<F>
where
    F: FnMut(Program, &[String]) -> Result<String, E>,
{
    pub(super) fn new(ask: F) -> Self {
        Self { ask, known: BTreeMap::new() }
    }

    /// What is wrong with a command of the project's programs; `None` if it is valid or calls
    /// another program.
    pub(super) fn find_fault(&mut self, command: &[String]) -> Result<Option<String>, E> {
        let called = |program: &&Program| {
            command.len() >= program.words.len() && command.iter().zip(program.words).all(|(a, b)| a == b)
        };
        let Some(program) = PROGRAMS.iter().find(called) else { return Ok(None) };
        let mut path: Vec<String> = Vec::new();
        let mut flags = self.help(*program, &path)?.flags.clone();
        let mut words = command[program.words.len()..].iter();
        while let Some(word) = words.next() {
            let help = self.help(*program, &path)?;
            if word == "--" {
                break;
            } else if word.starts_with('-') && word.len() > 1 {
                let flag = word.split('=').next().unwrap_or_default();
                match flags.get(flag) {
                    None => return Ok(Some(format!("{} has no {flag}", call(*program, &path)))),
                    Some(true) if flag == word => drop(words.next()),
                    Some(_) => {}
                }
            } else if help.commands.contains(word) {
                path.push(word.clone());
                flags.extend(self.help(*program, &path)?.flags.clone());
            } else if !help.commands.is_empty() && !is_placeholder(word) {
                return Ok(Some(format!("{} has no command {word}", call(*program, &path))));
            }
        }
        Ok(None)
    }

    fn help(&mut self, program: Program, path: &[String]) -> Result<&Help, E> {
        let key = (program.file, path.to_owned());
        if !self.known.contains_key(&key) {
            let text = (self.ask)(program, path)?;
            self.known.insert(key.clone(), Help::read(&text));
        }
        Ok(&self.known[&key])
    }
}

fn call(program: Program, path: &[String]) -> String {
    let words = program.words.iter().copied().chain(path.iter().map(String::as_str));
    words.collect::<Vec<_>>().join(" ")
}

/// Whether a word is a placeholder for the reader to fill in: `…`, `NAME`.
fn is_placeholder(word: &str) -> bool {
    word.contains('…') || (word.len() > 1 && word.chars().all(|letter| letter.is_ascii_uppercase()))
}
