//! Keeps each event on one line. Data from peers or other programs must not be able to forge log
//! lines or send terminal escape sequences.

use std::io::{self, Write};

/// Expects whole events, each ending in a newline, and escapes control characters within them.
pub(super) struct OneLine<W>(pub(super) W);

impl<W: Write> Write for OneLine<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = text.strip_suffix('\n').unwrap_or(&text);
        if line.contains(char::is_control) {
            self.0.write_all(escaped(line).as_bytes())?;
        } else {
            self.0.write_all(text.as_bytes())?;
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn escaped(line: &str) -> String {
    let mut escaped = String::with_capacity(line.len() + 16);
    for letter in line.chars() {
        if letter.is_control() {
            escaped.extend(letter.escape_default());
        } else {
            escaped.push(letter);
        }
    }
    escaped.push('\n');
    escaped
}
