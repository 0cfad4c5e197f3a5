//! Standard output: colours, line width and symbols of the terminal, JSON and YAML, closed pipes.

use std::io::{self, ErrorKind, IsTerminal, Write};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::progress;

#[cfg(test)]
mod tests;

/// Whether the other end of the pipe still reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    Open,
    Closed,
}

/// The symbols of conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symbols {
    /// `✔` and `✖`.
    Unicode,
    /// `ok` and `no`, for terminals and locales without UTF-8.
    Ascii,
}

impl Symbols {
    /// By the locale, as other programs decide it: `LC_ALL`, else `LC_CTYPE`, else `LANG`.
    pub(crate) fn of_environment() -> Self {
        Self::of_locale(["LC_ALL", "LC_CTYPE", "LANG"].map(|name| std::env::var(name).ok()))
    }

    /// The first variable that is set and not empty decides.
    fn of_locale(variables: [Option<String>; 3]) -> Self {
        let locale = variables.into_iter().flatten().find(|value| !value.is_empty());
        let locale = locale.unwrap_or_default().to_lowercase().replace('-', "");
        if locale.contains("utf8") { Self::Unicode } else { Self::Ascii }
    }

    pub(crate) fn yes(self) -> &'static str {
        match self {
            Self::Unicode => "✔",
            Self::Ascii => "ok",
        }
    }

    pub(crate) fn no(self) -> &'static str {
        match self {
            Self::Unicode => "✖",
            Self::Ascii => "no",
        }
    }
}

/// The width of the terminal. None: the output is no terminal, and lines are not wrapped.
pub(crate) fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.or_else(|| width_of(&io::stdout())).filter(|width| *width > 0)
}

#[cfg(unix)]
fn width_of(terminal: &impl std::os::fd::AsFd) -> Option<usize> {
    rustix::termios::tcgetwinsize(terminal).ok().map(|size| usize::from(size.ws_col))
}

#[cfg(not(unix))]
fn width_of<T>(_: &T) -> Option<usize> {
    None
}

/// The same of standard error.
pub(crate) fn error_width() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.or_else(|| width_of(&io::stderr())).filter(|width| *width > 0)
}

/// Prints the text as it is.
pub(crate) fn print(text: &str) -> io::Result<Reader> {
    write(&mut io::stdout().lock(), text)
}

/// Prints the text with colours where the output takes them.
pub(crate) fn print_painted(text: &str) -> io::Result<Reader> {
    write(&mut AutoStream::auto(io::stdout().lock()), &paint(text))
}

/// Separates two reports of a watch: by the time on a terminal, by an empty line elsewhere.
pub(crate) fn print_separator(time: &str) -> io::Result<Reader> {
    if io::stdout().is_terminal() { print(&format!("-- {time} --\n")) } else { print("\n") }
}

pub(crate) fn json(value: &impl Serialize) -> io::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

pub(crate) fn yaml(value: &impl Serialize) -> io::Result<String> {
    serde_yaml::to_string(value).map_err(io::Error::other)
}

fn write(out: &mut impl Write, text: &str) -> io::Result<Reader> {
    progress::end();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::Closed),
        written => written.map(|()| Reader::Open),
    }
}

const GOOD: Style = AnsiColor::Green.on_default().bold();
const PENDING: Style = AnsiColor::Yellow.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const REMEDY: Style = AnsiColor::Cyan.on_default();

/// Verdicts after the name that begins a line.
const VERDICTS: &[(&str, Style)] = &[
    (": Ready", GOOD),
    (": Progressing", PENDING),
    (": Pending", PENDING),
    (": Terminating", PENDING),
    (": Unknown", PENDING),
    (": Degraded", BAD),
    (": Conflict", BAD),
    (": not running", BAD),
    (" becomes Ready", GOOD),
    (" stays Ready", GOOD),
    (" does not become Ready", BAD),
];

/// Names of fields that need attention.
const FIELDS: &[(&str, Style)] =
    &[("  waiting ", PENDING), ("  problem ", BAD), ("  behind ", BAD), ("  to do ", REMEDY)];

/// Severities at the beginning of a line.
const SEVERITIES: &[(&str, Style)] =
    &[("error ", BAD), ("warning ", PENDING), ("note ", REMEDY), ("ok  ", GOOD), ("! ", PENDING)];

fn paint(text: &str) -> String {
    text.split_inclusive('\n').map(paint_line).collect()
}

fn paint_line(line: &str) -> String {
    if let Some((field, style)) = FIELDS.iter().chain(SEVERITIES).find(|(field, _)| line.starts_with(field)) {
        return format!("{style}{field}{style:#}{}", &line[field.len()..]);
    }
    let verdict = VERDICTS.iter().find_map(|(words, style)| {
        let (name, rest) = line.split_once(words)?;
        // A name has no blanks. With blanks it is a sentence that happens to use the words.
        (!name.contains(' ') && !name.is_empty()).then(|| format!("{name}{style}{words}{style:#}{rest}"))
    });
    verdict.unwrap_or_else(|| {
        let (yes, no) = (Symbols::Unicode.yes(), Symbols::Unicode.no());
        line.replace(yes, &format!("{GOOD}{yes}{GOOD:#}")).replace(no, &format!("{BAD}{no}{BAD:#}"))
    })
}
