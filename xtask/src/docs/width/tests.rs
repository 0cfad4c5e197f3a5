use super::*;

fn words(width: usize) -> String {
    "word ".repeat(width).chars().take(width - 1).chain(['.']).collect()
}

#[test]
fn pages_have_120_characters_except_in_tables_blocks_and_links() {
    let link = format!("see https://example.com/{} there", "a".repeat(110));
    let page = format!(
        "{}\n{}\n| {} |\n```text\n{}\n```\n![picture]({})\n{link}\n{}\n",
        words(120),
        words(121),
        words(200),
        words(200),
        words(200),
        words(130),
    );
    assert_eq!(
        of_page(&page),
        [
            (2, "121 characters; break the line after 120".to_owned()),
            (9, "130 characters; break the line after 120".to_owned()),
        ]
    );
}

#[test]
fn comments_have_100_characters_with_their_indentation() {
    let source = format!(
        "//! {}\n//! {}\n    /// {}\nlet text = \"// {}\";\n/// | {} |\n/// ```text\n/// {}\n/// ```\n// {}\n",
        words(96),
        words(97),
        words(93),
        words(200),
        words(200),
        words(200),
        words(98),
    );
    let lines: Vec<usize> = of_source(&source).into_iter().map(|(line, _)| line).collect();
    assert_eq!(lines, [2, 3, 9]);
}
