//! Completion for `kubectl isp`. kubectl runs the executable `kubectl_complete-isp` with the words
//! after `isp`, of which the last one is to be completed and may be empty. The executable runs
//! `kubectl-isp __complete` with them, which prints a candidate on each line, with a description
//! after a tab, and at the end a colon and Cobra's directive.
//!
//! | module | knows |
//! |---|---|
//! | `question` | what the last word can be, from the definition of the command line; pure |
//! | `names` | the names in the cluster |
//!
//! A shell waits for the answer. So it comes after two seconds at most, with the candidates found
//! until then, and an error is an answer without candidates.

mod names;
mod question;

use std::sync::mpsc;
use std::time::{Duration, Instant};

use self::question::{Question, Wanted};
use crate::output;
use crate::text::printable;

/// The hidden command.
const COMMAND: &str = "__complete";
const LIMIT: Duration = Duration::from_secs(2);

/// Cobra's directives, as bits: <https://pkg.go.dev/github.com/spf13/cobra#ShellCompDirective>.
#[derive(Clone, Copy)]
struct Directive(u8);

impl Directive {
    /// The shell completes file names.
    const DEFAULT: Self = Self(0);
    /// There is no blank after the candidate: more follows.
    const NO_SPACE: Self = Self(2);
    const NO_FILES: Self = Self(4);
    /// The candidates are extensions of files.
    const EXTENSIONS: Self = Self(8);
    const DIRECTORIES: Self = Self(16);
}

/// A word, and its description.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    word: String,
    description: String,
}

impl Candidate {
    fn new(word: impl Into<String>, description: impl Into<String>) -> Self {
        Self { word: word.into(), description: description.into() }
    }

    fn line(&self) -> String {
        let (word, description) = (printable(&self.word), printable(&self.description));
        if description.is_empty() { word + "\n" } else { format!("{word}\t{description}\n") }
    }
}

/// The words to complete, if the arguments of the program are a request for completion.
pub fn words(mut arguments: impl Iterator<Item = String>) -> Option<Vec<String>> {
    arguments.nth(1).filter(|first| first == COMMAND).map(|_| arguments.collect())
}

/// Prints the answer.
pub fn run(words: &[String]) {
    // Nobody can be told.
    let _ = output::print(&answer(words));
}

fn answer(words: &[String]) -> String {
    let Question { wanted, begun, place } = Question::of(words);
    let (candidates, directive) = match wanted {
        Wanted::These(candidates) => (candidates, Directive::NO_FILES),
        Wanted::Files(extensions) => {
            let extensions: Vec<Candidate> =
                extensions.iter().map(|extension| Candidate::new(*extension, "")).collect();
            let directive = if extensions.is_empty() { Directive::DEFAULT } else { Directive::EXTENSIONS };
            return text(&extensions, directive);
        }
        Wanted::Directories => (Vec::new(), Directive::DIRECTORIES),
        Wanted::Names(noun) => {
            let deadline = Instant::now() + LIMIT;
            let (found, candidates) = mpsc::channel();
            let word = begun.clone();
            // A program that supplies credentials may block, so a thread waits for it.
            std::thread::spawn(move || names::find(&place, noun, &word, &found));
            let next = || candidates.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok();
            let candidates: Vec<Candidate> = std::iter::from_fn(next).collect();
            let more = !candidates.is_empty() && candidates.iter().all(|each| each.word.ends_with('/'));
            let no_files = Directive::NO_FILES.0;
            (candidates, Directive(if more { no_files | Directive::NO_SPACE.0 } else { no_files }))
        }
    };
    let fitting: Vec<Candidate> =
        candidates.into_iter().filter(|candidate| candidate.word.starts_with(&begun)).collect();
    text(&fitting, directive)
}

fn text(candidates: &[Candidate], directive: Directive) -> String {
    let lines: String = candidates.iter().map(Candidate::line).collect();
    format!("{lines}:{}\n", directive.0)
}
