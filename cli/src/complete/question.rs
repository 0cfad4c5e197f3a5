//! What the last word of a command line can be, from the definition of the command line. Pure. It
//! never fails: a shell asks about lines that are not finished, and not always valid.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Arg, ArgAction, Command, CommandFactory};

use super::Candidate;
use crate::cli::{Cli, PlaceArgs};

#[cfg(test)]
mod tests;

/// Names that are in the cluster or in the kubeconfig.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noun {
    Object,
    Node,
    /// NAMESPACE/NAME.
    Pod,
    /// NAMESPACE/NAME of a Service that is exposed.
    Service,
    Namespace,
    Context,
}

/// What is wanted at the place of the last word.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    These(Vec<Candidate>),
    Names(Noun),
    /// Files with one of these extensions; without any, all files.
    Files(&'static [&'static str]),
    Directories,
}

/// Arguments, by their id, with values that clap does not know. A new command uses the ids.
const VALUES: [(&str, Wanted); 11] = [
    ("name", Wanted::Names(Noun::Object)),
    ("node", Wanted::Names(Noun::Node)),
    ("pod", Wanted::Names(Noun::Pod)),
    ("service", Wanted::Names(Noun::Service)),
    ("namespace", Wanted::Names(Noun::Namespace)),
    ("operator_namespace", Wanted::Names(Noun::Namespace)),
    ("helper_namespace", Wanted::Names(Noun::Namespace)),
    ("context", Wanted::Names(Noun::Context)),
    ("kubeconfig", Wanted::Files(&[])),
    ("file", Wanted::Files(&["yaml", "yml", "json"])),
    ("from_dir", Wanted::Directories),
];

/// A question about the last word.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) wanted: Wanted,
    /// The part of the value that is there already.
    pub(super) begun: String,
    /// The cluster that the words before name.
    pub(super) place: PlaceArgs,
}

impl Question {
    pub(super) fn of(words: &[String]) -> Self {
        let mut root = Cli::command();
        root.build();
        let nothing = String::new();
        let (last, before) = words.split_last().unwrap_or((&nothing, &[]));
        let mut line = Line::new(&root);
        for word in before {
            line.take(word);
        }
        let (wanted, begun) = line.wanted(last);
        Self { wanted, begun: begun.to_owned(), place: line.place }
    }
}

/// The words so far.
struct Line<'a> {
    command: &'a Command,
    /// A flag whose value comes next.
    awaiting: Option<&'a Arg>,
    used: BTreeSet<&'a str>,
    positionals: usize,
    /// Whether `--` has come.
    only_positionals: bool,
    place: PlaceArgs,
}

impl<'a> Line<'a> {
    fn new(root: &'a Command) -> Self {
        Self {
            command: root,
            awaiting: None,
            used: BTreeSet::new(),
            positionals: 0,
            only_positionals: false,
            place: PlaceArgs::default(),
        }
    }

    fn take(&mut self, word: &str) {
        if let Some(flag) = self.awaiting.take() {
            self.set(flag, word);
        } else if self.is_flag(word) {
            self.flag(word);
        } else if let Some(command) = self.subcommands().find(|command| command.get_name() == word) {
            self.command = command;
        } else {
            self.positionals += 1;
        }
    }

    fn is_flag(&self, word: &str) -> bool {
        !self.only_positionals && word.len() > 1 && word.starts_with('-')
    }

    fn flag(&mut self, word: &str) {
        if word == "--" {
            self.only_positionals = true;
        } else if let Some(long) = word.strip_prefix("--") {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let Some(flag) = self.long(name) else { return };
            self.used.insert(flag.get_id().as_str());
            match value {
                Some(value) => self.set(flag, value),
                None => self.awaiting = Some(flag).filter(|flag| takes_value(flag)),
            }
        } else {
            for (place, letter) in word.char_indices().skip(1) {
                let Some(flag) = self.command.get_arguments().find(|flag| flag.get_short() == Some(letter))
                else {
                    return;
                };
                self.used.insert(flag.get_id().as_str());
                if takes_value(flag) {
                    let value = word[place + letter.len_utf8()..].trim_start_matches('=');
                    self.awaiting = Some(flag).filter(|_| value.is_empty());
                    return;
                }
            }
        }
    }

    fn long(&self, name: &str) -> Option<&'a Arg> {
        self.command.get_arguments().find(|flag| flag.get_long() == Some(name))
    }

    /// Notes a value that says which cluster is asked.
    fn set(&mut self, flag: &Arg, value: &str) {
        match flag.get_id().as_str() {
            "kubeconfig" => self.place.kubeconfig = Some(PathBuf::from(value)),
            "context" => self.place.context = Some(value.to_owned()),
            _ => {}
        }
    }

    /// Commands that can come next.
    fn subcommands(&self) -> impl Iterator<Item = &'a Command> + use<'a> {
        let first = self.positionals == 0 && !self.only_positionals;
        let commands = first.then(|| self.command.get_subcommands()).into_iter().flatten();
        commands.filter(|command| !command.is_hide_set())
    }

    /// What is wanted, and the part of it that is there already.
    fn wanted<'w>(&self, word: &'w str) -> (Wanted, &'w str) {
        if let Some(flag) = self.awaiting {
            return (values(flag), word);
        }
        if !self.only_positionals && word.starts_with('-') {
            let with_value = word.strip_prefix("--").and_then(|long| long.split_once('='));
            return match with_value {
                // The shell's part of Cobra adds the flag again.
                Some((name, value)) => (self.long(name).map_or(Wanted::These(Vec::new()), values), value),
                None => (Wanted::These(self.flags(word == "-")), word),
            };
        }
        let commands: Vec<Candidate> = self.subcommands().map(described).collect();
        if !commands.is_empty() {
            return (Wanted::These(commands), word);
        }
        let positional = self.command.get_positionals().nth(self.positionals);
        (positional.map_or(Wanted::These(Vec::new()), values), word)
    }

    /// The flags that are not on the line yet.
    fn flags(&self, short: bool) -> Vec<Candidate> {
        let flags = self.command.get_arguments().filter(|flag| !flag.is_positional() && !flag.is_hide_set());
        let unused = flags.filter(|flag| {
            !self.used.contains(flag.get_id().as_str()) || matches!(flag.get_action(), ArgAction::Append)
        });
        let mut found = Vec::new();
        for flag in unused {
            let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
            let short = flag.get_short().filter(|_| short).map(|letter| format!("-{letter}"));
            let long = flag.get_long().map(|long| format!("--{long}"));
            found.extend(short.into_iter().chain(long).map(|word| Candidate::new(word, help.clone())));
        }
        found
    }
}

fn takes_value(flag: &Arg) -> bool {
    flag.get_action().takes_values()
}

fn described(command: &Command) -> Candidate {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    Candidate::new(command.get_name(), about)
}

fn values(argument: &Arg) -> Wanted {
    let possible = argument.get_possible_values();
    if !possible.is_empty() {
        let help = |value: &clap::builder::PossibleValue| {
            value.get_help().map(ToString::to_string).unwrap_or_default()
        };
        let shown = possible.iter().filter(|value| !value.is_hide_set());
        return Wanted::These(shown.map(|value| Candidate::new(value.get_name(), help(value))).collect());
    }
    let id = argument.get_id().as_str();
    let known = VALUES.into_iter().find(|(known, _)| *known == id);
    known.map_or(Wanted::These(Vec::new()), |(_, wanted)| wanted)
}
