use super::{Tests, check_blocks, commands, missing_files};
use crate::docs::markdown::Page;

fn problems(fence: &str) -> Vec<String> {
    let page = Page::read("a.md", &format!("```{fence}\nls\n```"));
    let this = r#"docs::commands("a.md", "it_works")"#;
    let another = r#"docs::commands("docs/a.md", "it_looks_elsewhere")"#;
    let tests = Tests::from([
        ("it_works".to_owned(), vec![another, this]),
        ("it_looks_elsewhere".to_owned(), vec![another]),
        ("it_takes_nothing".to_owned(), vec![this]),
    ]);
    check_blocks(&page, &tests).iter().map(ToString::to_string).collect()
}

/// The commands in a text, as line number and words joined by spaces.
fn found(text: &str) -> Vec<(usize, String)> {
    commands(&Page::read("a.md", text)).into_iter().map(|c| (c.line, c.words.join(" "))).collect()
}

#[test]
fn a_block_that_says_how_it_is_checked_is_fine() {
    for fence in ["sh test=it_works", "console needs=cloud", "yaml", "text"] {
        assert_eq!(problems(fence), [""; 0], "{fence}");
    }
}

#[test]
fn a_block_that_does_not_say_it_is_found() {
    for (fence, what) in [
        ("sh", "a block of commands needs one of test=<function> and needs=<what>"),
        ("sh test=it_works needs=cloud", "a block of commands needs one of test=<function> and needs=<what>"),
        ("sh test=it_fails", "there is no test it_fails"),
        (
            "sh test=it_looks_elsewhere",
            "the test it_looks_elsewhere does not read its commands from this page: its source does not contain \"a.md\" or its own name",
        ),
        (
            "sh test=it_takes_nothing",
            "the test it_takes_nothing does not read its commands from this page: its source does not contain \"a.md\" or its own name",
        ),
        ("sh needs=luck", "needs=luck is neither test=<function> nor needs=<one of cloud, release, machine>"),
        ("bash", "use sh or console for commands"),
        ("", "the block has no language; use text if there is none"),
    ] {
        assert_eq!(problems(fence), [format!("a.md:1: {what}")]);
    }
}

#[test]
fn commands_are_taken_from_blocks_line_by_line() {
    let text = "```sh needs=cloud\na one \\\n  two   # why\n# a remark\nb 'in one # word' | c && d\n```";
    let want = [(2, "a one two"), (5, "b in one # word"), (5, "c"), (5, "d")];
    assert_eq!(found(text), want.map(|(line, words)| (line, words.to_owned())));
}

#[test]
fn of_a_console_only_what_is_typed_is_a_command() {
    let text = "```console needs=cloud\n$ kubectl isp status\nweb: Ready\n```";
    assert_eq!(found(text), [(2, "kubectl isp status".to_owned())]);
}

#[test]
fn between_backticks_there_may_be_a_command_with_what_can_be_left_out() {
    assert_eq!(
        found("say `kubectl isp status [NAME] [-o json|yaml]`"),
        [(1, "kubectl isp status NAME -o json|yaml".to_owned())]
    );
}

#[test]
fn files_that_are_not_there_are_found() {
    let page =
        Page::read("a.md", "`kubectl apply -k manifests/there/ -f manifests/gone -f crds/*.yaml -f other/x`");
    let missing = missing_files(&commands(&page)[0], &|path: &str| path == "manifests/there");
    assert_eq!(missing, ["manifests/gone"]);
}
