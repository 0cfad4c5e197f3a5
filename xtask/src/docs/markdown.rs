//! A Markdown page, as far as the checks need it: headings, links, code blocks, inline code, marked
//! figures.
//!
//! Supports only the subset of Markdown that this project uses. Pure.

#[cfg(test)]
mod tests;

/// A parsed page.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// The path in the repository, with slashes.
    pub(super) path: String,
    /// The anchors of its headings, as GitHub generates them.
    pub(super) anchors: Vec<String>,
    pub(super) links: Vec<Piece>,
    pub(super) blocks: Vec<Block>,
    /// Inline code, between backticks.
    pub(super) spans: Vec<Piece>,
    pub(super) figures: Vec<Marked>,
}

/// A piece of text and its line number, counted from one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) line: usize,
    pub(super) text: String,
}

/// A fenced block.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The line of the opening fence.
    pub(super) line: usize,
    pub(super) language: String,
    /// The words after the language.
    pub(super) notes: Vec<String>,
    pub(super) lines: Vec<String>,
}

/// A figure with its source, as in `0.2 ms <!-- measured: webhook.p50 -->`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Marked {
    pub(super) line: usize,
    /// The name after `measured:`.
    pub(super) name: String,
    /// The text of the line before the marker.
    pub(super) before: String,
}

const FENCE: &str = "```";
const MARKER: &str = "<!-- measured:";

impl Page {
    /// Parses a page.
    pub(super) fn read(path: &str, text: &str) -> Self {
        let mut page = Self { path: path.to_owned(), ..Self::default() };
        let mut open: Option<Block> = None;
        // Inline code may continue on the next line, but not beyond its paragraph.
        let mut span: Option<Piece> = None;
        for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line)) {
            if let Some(info) = line.trim_start().strip_prefix(FENCE) {
                match open.take() {
                    Some(block) => page.blocks.push(block),
                    None => open = Some(opened(number, info)),
                }
            } else if let Some(block) = &mut open {
                block.lines.push(line.to_owned());
            } else {
                page.read_prose(number, line, &mut span);
            }
        }
        page.blocks.extend(open);
        page
    }

    fn read_prose(&mut self, number: usize, line: &str, span: &mut Option<Piece>) {
        if line.trim().is_empty() {
            *span = None;
        }
        if let Some(text) = heading(line) {
            self.anchors.push(anchor(text, &self.anchors));
        }
        let prose = self.take_spans(number, line, span);
        self.links.extend(targets(&prose).map(|target| Piece { line: number, text: target.to_owned() }));
        for (at, _) in prose.match_indices(MARKER) {
            let name = prose[at + MARKER.len()..].split("-->").next().unwrap_or_default().trim().to_owned();
            self.figures.push(Marked { line: number, name, before: prose[..at].trim_end().to_owned() });
        }
    }

    /// Moves the inline code of a line to `spans` and returns the remaining prose.
    fn take_spans(&mut self, number: usize, line: &str, span: &mut Option<Piece>) -> String {
        let mut prose = String::new();
        if let Some(open) = span {
            open.text.push(' ');
        }
        for letter in line.chars() {
            match (letter, span.take()) {
                ('`', Some(closed)) => self.spans.push(closed),
                ('`', None) => *span = Some(Piece { line: number, text: String::new() }),
                (letter, Some(mut open)) => {
                    open.text.push(letter);
                    *span = Some(open);
                }
                (letter, None) => prose.push(letter),
            }
        }
        prose
    }
}

fn opened(line: usize, info: &str) -> Block {
    let mut words = info.split_whitespace().map(str::to_owned);
    Block { line, language: words.next().unwrap_or_default(), notes: words.collect(), lines: Vec::new() }
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    (1..=6).contains(&level).then(|| text.strip_prefix(' ')).flatten()
}

/// Generates an anchor as GitHub does: letters, digits, dashes and underscores stay, spaces become
/// dashes, and duplicates get a number.
fn anchor(heading: &str, before: &[String]) -> String {
    let mut text = String::new();
    let mut rest = heading;
    // Of a link, only its text counts.
    while let Some((head, tail)) = rest.split_once("](") {
        text.push_str(head);
        rest = tail.split_once(')').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    let kept = text.trim().to_lowercase();
    let kept = kept.chars().filter(|letter| letter.is_alphanumeric() || ['-', '_', ' '].contains(letter));
    let name: String = kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect();
    let numbered = (1..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.clone()).chain(numbered).find(|name| !before.contains(name)).unwrap_or(name)
}

/// The targets of the links and images on a line.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let after = |opening: &'static str, closing: char| {
        line.match_indices(opening)
            .filter_map(move |(at, _)| line[at + opening.len()..].split(closing).next())
    };
    after("](", ')').chain(after("src=\"", '"')).chain(after("srcset=\"", '"')).chain(after("href=\"", '"'))
}
