use super::{Marked, Page, Piece};

fn piece(line: usize, text: &str) -> Piece {
    Piece { line, text: text.to_owned() }
}

#[test]
fn anchors_are_those_that_github_makes() {
    let page = Page::read(
        "a.md",
        "# kubectl isp\n## What it's for, in `one` line\n## Again\n### Again\n##no heading\n## A [link](b.md) in it",
    );
    assert_eq!(page.anchors, ["kubectl-isp", "what-its-for-in-one-line", "again", "again-1", "a-link-in-it"]);
}

#[test]
fn a_block_has_its_language_and_its_notes_and_hides_what_is_in_it() {
    let page = Page::read("a.md", "one\n```sh test=it_works\n# no heading [no](link)\n```\n## two");
    let block = &page.blocks[0];
    assert_eq!((block.line, block.language.as_str()), (2, "sh"));
    assert_eq!(block.notes, ["test=it_works"]);
    assert_eq!(block.lines, ["# no heading [no](link)"]);
    assert_eq!(page.anchors, ["two"]);
    assert_eq!(page.links, []);
}

#[test]
fn a_block_that_is_never_closed_is_kept() {
    assert_eq!(Page::read("a.md", "```sh\nls").blocks[0].lines, ["ls"]);
}

#[test]
fn links_and_pictures_are_found_also_around_code_and_never_within_it() {
    let page = Page::read("a.md", "[`crds/`](crds) and ![x](i.svg)\n`[no](n)`\n<img src=\"p.svg\">");
    assert_eq!(page.links, [piece(1, "crds"), piece(1, "i.svg"), piece(3, "p.svg")]);
}

#[test]
fn code_within_a_line_goes_on_in_the_next_one_and_ends_with_the_paragraph() {
    let page = Page::read("a.md", "use `kubectl\nisp plan` or `not closed\n\n`next`");
    assert_eq!(page.spans, [piece(1, "kubectl isp plan"), piece(4, "next")]);
}

#[test]
fn a_marked_figure_is_what_stands_before_its_marker() {
    let page = Page::read("a.md", "| median | 0.2 ms <!-- measured: webhook.p50 --> |");
    let marked = Marked { line: 1, name: "webhook.p50".to_owned(), before: "| median | 0.2 ms".to_owned() };
    assert_eq!(page.figures, [marked]);
}
