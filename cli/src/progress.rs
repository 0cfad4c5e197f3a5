//! One line on standard error that says what a command is doing, while it takes longer than a
//! second. It is shown only where a person looks: both standard output and standard error are
//! terminals. It is ASCII without escape sequences, and is erased before anything else is printed.
//!
//! Whoever reads or waits calls `show`; `output` and `main` call [`end`].

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::output;

#[cfg(test)]
mod tests;

/// A command that is quicker shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);
const REDRAW: Duration = Duration::from_millis(100);
/// If the width of the terminal is not known.
const WIDTH: usize = 80;

static LINE: Mutex<Line> = Mutex::new(Line { text: None, since: None, drawn: 0, over: false });

struct Line {
    text: Option<String>,
    /// When the command began to say something.
    since: Option<Instant>,
    /// How many columns of the line on the screen are in use.
    drawn: usize,
    /// Whether the command has begun to print its result.
    over: bool,
}

/// Says what the command is doing now.
pub(crate) fn show(text: String) {
    let mut line = LINE.lock().unwrap_or_else(PoisonError::into_inner);
    if line.over || !io::stderr().is_terminal() || !io::stdout().is_terminal() {
        return;
    }
    line.text = Some(text);
    if line.since.is_none() {
        line.since = Some(Instant::now());
        // A thread also draws while a request or a computation takes long. It ends with the
        // program.
        std::thread::spawn(redraw);
    }
}

/// The same for a list that is being read.
pub(crate) fn reading(resource: &str, number: usize) {
    show(match number {
        0 => format!("reading {resource}"),
        number => format!("reading {resource}: {number} so far"),
    });
}

/// Erases the line. From now on nothing is shown.
pub fn end() {
    let mut line = LINE.lock().unwrap_or_else(PoisonError::into_inner);
    line.over = true;
    if line.drawn > 0 {
        draw(&erased(line.drawn));
        line.drawn = 0;
    }
}

fn redraw() {
    loop {
        std::thread::sleep(REDRAW);
        let mut line = LINE.lock().unwrap_or_else(PoisonError::into_inner);
        if line.over {
            return;
        }
        let late = line.since.is_some_and(|since| since.elapsed() >= PATIENCE);
        if let Some(text) = line.text.clone().filter(|_| late) {
            let (frame, drawn) = frame(&text, line.drawn, output::error_width().unwrap_or(WIDTH));
            draw(&frame);
            line.drawn = drawn;
        }
    }
}

fn draw(text: &str) {
    let mut out = io::stderr().lock();
    // Nothing depends on it.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// What draws a text over the last one, and how many columns it uses.
fn frame(text: &str, last: usize, width: usize) -> (String, usize) {
    // In the last column some terminals begin a new line.
    let fitting = text.chars().take(width.saturating_sub(1));
    let text: String = fitting.map(|letter| if is_plain(letter) { letter } else { '?' }).collect();
    let drawn = text.len();
    (format!("\r{text}{}", " ".repeat(last.saturating_sub(drawn))), drawn)
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_graphic() || letter == ' '
}

fn erased(drawn: usize) -> String {
    format!("\r{}\r", " ".repeat(drawn))
}
