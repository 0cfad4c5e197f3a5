//! Standard output: colours on a terminal only, and a quiet end when nobody reads any more.

use std::io::{self, ErrorKind, IsTerminal, Write};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};

#[cfg(test)]
mod tests;

/// Whether somebody still reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    There,
    Gone,
}

/// Prints it as it is.
pub(crate) fn print(text: &str) -> io::Result<Reader> {
    write(&mut io::stdout().lock(), text)
}

/// Prints it with colours, where there are any.
pub(crate) fn print_painted(text: &str) -> io::Result<Reader> {
    write(&mut AutoStream::auto(io::stdout().lock()), &paint(text))
}

/// Parts what is shown now from what was shown before: by the time, for whoever looks at a terminal.
pub(crate) fn print_separator(time: &str) -> io::Result<Reader> {
    if io::stdout().is_terminal() { print(&format!("-- {time} --\n")) } else { print("\n") }
}

fn write(out: &mut impl Write, text: &str) -> io::Result<Reader> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::Gone),
        written => written.map(|()| Reader::There),
    }
}

const GOOD: Style = AnsiColor::Green.on_default().bold();
const UNDER_WAY: Style = AnsiColor::Yellow.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const WAY_OUT: Style = AnsiColor::Cyan.on_default();

/// Words that say how it is, at the end of a line that begins a block or of a plan.
const VERDICTS: &[(&str, Style)] = &[
    (": Ready", GOOD),
    (": Progressing", UNDER_WAY),
    (": Pending", UNDER_WAY),
    (": Terminating", UNDER_WAY),
    (": Unknown", UNDER_WAY),
    (": Degraded", BAD),
    (": Conflict", BAD),
    (" becomes Ready", GOOD),
    (" stays Ready", GOOD),
    (" does not become Ready", BAD),
];

/// Names of fields that somebody has to look at.
const FIELDS: &[(&str, Style)] =
    &[("  waits for ", UNDER_WAY), ("  wrong ", BAD), ("  behind ", BAD), ("  to do ", WAY_OUT)];

/// How bad a finding is, at the beginning of its line.
const SEVERITIES: &[(&str, Style)] = &[("error ", BAD), ("warning ", UNDER_WAY), ("note ", WAY_OUT)];

fn paint(text: &str) -> String {
    text.split_inclusive('\n').map(paint_line).collect()
}

fn paint_line(line: &str) -> String {
    if let Some((field, style)) = FIELDS.iter().chain(SEVERITIES).find(|(field, _)| line.starts_with(field)) {
        return format!("{style}{field}{style:#}{}", &line[field.len()..]);
    }
    let said = VERDICTS.iter().find_map(|(words, style)| {
        let (name, rest) = line.split_once(words)?;
        // A name has no blanks; what has is a sentence that happens to use the words.
        (!name.contains(' ') && !name.is_empty()).then(|| format!("{name}{style}{words}{style:#}{rest}"))
    });
    said.unwrap_or_else(|| line.to_owned())
}
