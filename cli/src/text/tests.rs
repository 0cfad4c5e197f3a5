#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

#[test]
fn ages_are_as_kubectl_prints_them() {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    for (seconds, expected) in [
        (-5, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (150, "2m30s"),
        (720, "12m"),
        (9000, "150m"),
        (11_100, "3h5m"),
        (36_000, "10h"),
        (187_200, "2d4h"),
        (3_456_000, "40d"),
    ] {
        let now = start + SignedDuration::from_secs(seconds);
        assert_eq!(age(start, now), expected, "{seconds} s");
    }
}

#[test]
fn prose_is_wrapped_to_the_terminal_and_commands_are_not() {
    let words = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen";
    let mut block = Block::new("web: Ready", Some(60));
    block.field("waiting", [words.to_owned(), format!("  {words}")]);
    block.commands("to do", [words.to_owned()]);
    assert_eq!(
        block.into_text(),
        "\
web: Ready
  waiting    one two three four five six seven eight nine
               ten eleven twelve thirteen fourteen
               one two three four five six seven eight nine
                 ten eleven twelve thirteen fourteen
  to do      one two three four five six seven eight nine ten eleven twelve thirteen fourteen
"
    );
}

#[test]
fn a_word_that_is_too_long_stays_whole_and_no_line_is_wrapped_without_a_terminal() {
    assert_eq!(wrap("aaaaaaaaaa bb", 5, 2), ["aaaaaaaaaa", "  bb"]);
    let line = "x ".repeat(200);
    let mut block = Block::new("web: Ready", None);
    block.field("waiting", [line.trim().to_owned()]);
    assert_eq!(block.into_text().lines().count(), 2);
}

#[test]
fn text_of_the_cluster_cannot_command_the_terminal_or_forge_a_line() {
    let mut block = Block::new("web: Ready\nok  forged", None);
    block.field("problem", ["\u{1b}[2Jx\nok  forged".to_owned()]);
    let text = block.into_text();
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[test]
fn long_lists_of_names_are_shortened() {
    let names: Vec<String> = (1..=6).map(|number| format!("work-{number}")).collect();
    assert_eq!(few(&names[..4]), "work-1, work-2, work-3, work-4");
    assert_eq!(few(&names), "work-1, work-2 and 4 more");
}

#[test]
fn a_comment_that_does_not_fit_precedes_its_command() {
    let lines = || ["kubectl get pods -A -o wide   # where the agents run".to_owned()];
    for (width, expected) in [
        (Some(60), "web\n  to do      # where the agents run\n             kubectl get pods -A -o wide\n"),
        (Some(80), "web\n  to do      kubectl get pods -A -o wide   # where the agents run\n"),
        (None, "web\n  to do      kubectl get pods -A -o wide   # where the agents run\n"),
    ] {
        let mut block = Block::new("web", width);
        block.commands("to do", lines());
        assert_eq!(block.into_text(), expected);
    }
}

#[test]
fn further_lines_of_each_line_begin_in_one_column() {
    let text = "  5  one two three four five six seven eight nine ten eleven twelve\nweb becomes Ready\n";
    assert_eq!(
        wrap_lines(text, Some(60), 7),
        "  5  one two three four five six seven eight nine ten eleven\n       twelve\nweb becomes Ready\n"
    );
    assert_eq!(wrap_lines(text, None, 7), text);
}
