//! The demo's output: lines, and on a terminal a status line that is rewritten.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

/// Returns to the start of the line and erases it.
const CLEAR: &str = "\r\x1b[2K";
const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// The meaning of a coloured text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Bad,
    Heading,
}

/// Standard output, or standard error if the former is JSON.
#[derive(Debug)]
pub(crate) struct Screen {
    to_error: bool,
    /// Whether the output is a terminal that understands control characters.
    live: bool,
    /// The last status.
    last: Mutex<String>,
}

impl Screen {
    pub(crate) fn new(to_error: bool) -> Self {
        let terminal = if to_error { io::stderr().is_terminal() } else { io::stdout().is_terminal() };
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { to_error, live: terminal && wanted, last: Mutex::default() }
    }

    fn write(&self, text: &str) {
        // Ignores write errors: the demo must run to its end even without a reader, because it ends
        // with the cleanup.
        let _ = if self.to_error {
            io::stderr().write_all(text.as_bytes())
        } else {
            io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush())
        };
    }

    /// Prints a permanent line.
    pub(crate) fn say(&self, line: &str) {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let clear = if self.live { CLEAR } else { "" };
        self.write(&format!("{clear}{line}\n"));
    }

    pub(crate) fn heading(&self, line: &str) {
        self.say(&format!("\n{}", self.tinted(Tone::Heading, line)));
    }

    pub(crate) fn fail(&self, line: &str) {
        eprintln!("{}error: {line}", if self.live { CLEAR } else { "" });
    }

    /// Shows the status: on a terminal as the rewritten last line, otherwise as a new line whenever
    /// `what` changes.
    pub(crate) fn stand(&self, what: &str, counts: &str) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if self.live {
            self.write(&format!("{CLEAR}  {what}; {counts}"));
        } else if *last != what {
            self.write(&format!("  {what}; {counts}\n"));
        }
        what.clone_into(&mut last);
    }

    pub(crate) fn tinted(&self, tone: Tone, text: &str) -> String {
        if !self.live {
            return text.to_owned();
        }
        let colour = match tone {
            Tone::Good => GREEN,
            Tone::Bad => RED,
            Tone::Heading => BOLD,
        };
        format!("{colour}{text}{PLAIN}")
    }
}
