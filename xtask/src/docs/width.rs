//! Checks the width of prose: at most 120 characters on pages, at most 100 in comments. Pure.
//!
//! Tables, code, and lines that cannot be broken, such as a long link, are exempt.

#[cfg(test)]
mod tests;

/// The most characters of a line of a page.
const PAGE: usize = 120;
/// The most characters of a line of a comment, with its indentation.
const COMMENT: usize = 100;

/// The lines of a page that are too wide, with what is wrong.
pub(super) fn of_page(text: &str) -> Vec<(usize, String)> {
    let mut in_block = false;
    let mut wide = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            wide.extend(too_wide(line, line, PAGE).map(|what| (index + 1, what)));
        }
    }
    wide
}

/// The lines of comments in a Rust source that are too wide, with what is wrong.
pub(super) fn of_source(source: &str) -> Vec<(usize, String)> {
    let mut in_block = false;
    let mut wide = Vec::new();
    for (index, line) in source.lines().enumerate() {
        let Some(comment) = comment(line) else {
            in_block = false;
            continue;
        };
        if comment.starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            wide.extend(too_wide(line, comment, COMMENT).map(|what| (index + 1, what)));
        }
    }
    wide
}

/// The text of a line that is a comment as a whole.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = ["///", "//!", "//"].iter().find_map(|marker| line.strip_prefix(marker));
    text.map(str::trim)
}

fn too_wide(line: &str, prose: &str, most: usize) -> Option<String> {
    let width = line.chars().count();
    let is_exempt = prose.starts_with('|') || prose.starts_with("![") || longest_word(prose) > most / 2;
    (width > most && !is_exempt).then(|| format!("{width} characters; break the line after {most}"))
}

fn longest_word(prose: &str) -> usize {
    prose.split_whitespace().map(|word| word.chars().count()).max().unwrap_or_default()
}
