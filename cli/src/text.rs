//! Layout that every command shares: blocks of named fields, shortened lists, ages, line width.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::core::Selector;

#[cfg(test)]
mod tests;

/// The column in which the value of a field begins.
const INDENT: usize = 13;
/// Further lines of a wrapped value are indented by this much more.
const HANGING: usize = 2;
/// A narrower terminal is treated as this wide.
const MIN_WIDTH: usize = 60;
/// So many names are listed; of more, the first two and a count.
const MAX_NAMES: usize = 4;

/// A heading and named fields. A field may have several lines; its name precedes the first.
pub(crate) struct Block {
    text: String,
    /// Long lines are wrapped to this width. None: never.
    width: Option<usize>,
}

impl Block {
    pub(crate) fn new(heading: &str, width: Option<usize>) -> Self {
        let width = width.map(|width| width.max(MIN_WIDTH));
        let heading = wrap(&printable(heading), width.unwrap_or(usize::MAX), INDENT).join("\n");
        Self { text: heading + "\n", width }
    }

    /// Adds prose. Lines that do not fit are wrapped.
    pub(crate) fn field(&mut self, name: &str, lines: impl IntoIterator<Item = String>) {
        let width = self.width.map_or(usize::MAX, |width| width - INDENT);
        let lines: Vec<String> = lines.into_iter().flat_map(|line| wrap(&line, width, HANGING)).collect();
        self.lines(name, lines);
    }

    /// Adds commands. They are never wrapped, so that they can be copied; a comment that does not
    /// fit precedes its command.
    pub(crate) fn commands(&mut self, name: &str, lines: impl IntoIterator<Item = String>) {
        let width = self.width.map_or(usize::MAX, |width| width - INDENT);
        let lines = lines.into_iter().flat_map(|line| match line.split_once("   # ") {
            Some((command, comment)) if line.chars().count() > width => {
                vec![format!("# {comment}"), command.to_owned()]
            }
            _ => vec![line],
        });
        self.lines(name, lines);
    }

    fn lines(&mut self, name: &str, lines: impl IntoIterator<Item = String>) {
        for (place, line) in lines.into_iter().enumerate() {
            let mut head = if place == 0 { format!("  {name}") } else { String::new() };
            if head.len() >= INDENT {
                self.text.push_str(&head);
                self.text.push('\n');
                head.clear();
            }
            self.text.push_str(format!("{head:INDENT$}{}", printable(&line)).trim_end());
            self.text.push('\n');
        }
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// Text from the cluster, made safe for a terminal: control characters are replaced.
pub(crate) fn printable(text: &str) -> String {
    let letters = text.chars();
    letters.map(|letter| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter }).collect()
}

/// Wraps the lines of a text. Further lines of each begin in the column `indent`.
pub(crate) fn wrap_lines(text: &str, width: Option<usize>, indent: usize) -> String {
    let width = width.map_or(usize::MAX, |width| width.max(MIN_WIDTH));
    let hanging = |line: &str| (indent + line.trim_start().len()).saturating_sub(line.len());
    text.lines().flat_map(|line| wrap(line, width, hanging(line))).map(|line| line + "\n").collect()
}

/// Breaks a line at blanks. Further lines are indented by `hanging` more than the first one.
pub(crate) fn wrap(line: &str, width: usize, hanging: usize) -> Vec<String> {
    let own = line.len() - line.trim_start().len();
    let mut lines = Vec::new();
    let (mut current, mut length, mut first) = (" ".repeat(own), own, true);
    for word in line.split(' ').skip(own) {
        let word_length = word.chars().count();
        if !first && length + 1 + word_length > width {
            lines.push(std::mem::replace(&mut current, " ".repeat(own + hanging)));
            (length, first) = (own + hanging, true);
        }
        if !first {
            current.push(' ');
            length += 1;
        }
        current.push_str(word);
        length += word_length;
        first = false;
    }
    lines.push(current);
    lines
}

/// The first lines, and a last one that counts the others.
pub(crate) fn cut(mut lines: Vec<String>, max: usize, hint: &str) -> Vec<String> {
    if lines.len() > max {
        let left = lines.len() - max;
        lines.truncate(max);
        lines.push(format!("and {left} more{hint}"));
    }
    lines
}

/// Names in one line: `a, b`, or `a, b and 7 more`.
pub(crate) fn few(names: &[String]) -> String {
    match names {
        [first, second, ..] if names.len() > MAX_NAMES => {
            format!("{first}, {second} and {} more", names.len() - 2)
        }
        few => few.join(", "),
    }
}

/// `1 endpoint`, `2 endpoints`.
pub(crate) fn count(number: impl Into<u64>, noun: &str) -> String {
    let number = number.into();
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// The time since then, as `kubectl get` prints ages: `45s`, `12m`, `3h5m`, `2d4h`, `40d`.
pub(crate) fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(since).max(SignedDuration::ZERO).as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    let two = |large: i64, large_unit: char, small: i64, small_unit: char| {
        if small == 0 {
            format!("{large}{large_unit}")
        } else {
            format!("{large}{large_unit}{small}{small_unit}")
        }
    };
    match (minutes, hours, days) {
        (..2, _, _) => format!("{seconds}s"),
        (2..10, _, _) => two(minutes, 'm', seconds % 60, 's'),
        (_, ..3, _) => format!("{minutes}m"),
        (_, 3..8, _) => two(hours, 'h', minutes % 60, 'm'),
        (_, _, ..2) => format!("{hours}h"),
        (_, _, 2..8) => two(days, 'd', hours % 24, 'h'),
        _ => format!("{days}d"),
    }
}

/// The command that makes an object use mode Beside, which needs no kube-proxy and has no pools.
pub(crate) fn use_beside(object: &str) -> String {
    format!(
        r#"kubectl patch isp {object} --type=merge -p '{{"spec":{{"mode":"Beside","nodePools":null}}}}'   # works beside any kube-proxy, or without one"#
    )
}

/// A selector of nodes in the syntax of `kubectl get -l`.
pub(crate) fn selector(selector: &LabelSelector) -> String {
    match Selector::try_from(selector.clone()) {
        Ok(selector) if selector.selects_all() => "every node".to_owned(),
        Ok(selector) => selector.to_string(),
        Err(error) => format!("unreadable: {error}"),
    }
}
