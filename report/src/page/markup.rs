//! Text as HTML.

/// Escapes text for elements and for attributes in double quotes. Control characters, which no
/// reader needs and some programs obey, become the replacement character.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(c),
            c if is_deceptive(c) => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Control characters, and those that change the direction of the text around them.
pub(super) fn is_deceptive(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A short text with a class: its colour and its mark say the same as its words.
pub(super) fn badge(class: &str, mark: &str, words: &str) -> String {
    format!(
        "<span class=\"badge {class}\"><span class=\"mark\" aria-hidden=\"true\">{mark}</span>{}</span>",
        escape(words)
    )
}
