use std::collections::BTreeSet;

use super::{Code, spans};

const SOURCE: &str = "\
//! Calls `old_name`, which no code has.
mod connection;
/// A `Door` that `fn hidden_here` does not declare.
pub struct Door;
impl Door {
    fn let_in(&self) {}
}
";

fn fault(text: &str) -> Option<String> {
    let source = SOURCE.to_owned();
    let code = Code::read([&source].into_iter());
    let exists = |path: &str| ["docs", "docs/api.md", "runtime", "runtime/src", "target"].contains(&path);
    code.find_fault(text, &BTreeSet::from(["isp_runtime".to_owned()]), &exists)
}

#[test]
fn names_of_the_code_and_of_files_are_found() {
    for text in [
        "docs/api.md",
        "runtime/src",
        "target/images.tar",
        "isp_runtime::connection::Door",
        "isp_runtime::connection",
    ]
    .into_iter()
    .chain(["Door::let_in", "Door::let_in(caller)", "let_in", "isp_runtime", "let_in()"])
    {
        assert_eq!(fault(text), None, "{text}");
    }
}

#[test]
fn words_of_others_are_left_alone() {
    for text in ["kube-proxy", "view", "Services", "KUBE_PROXY", "isp_agent_views_total", "::/0", "[::1]:80"]
        .into_iter()
        .chain([
            "2001:db8::/32",
            "kube-system/kube-proxy",
            "crds/*.yaml",
            "docs/<page>.md",
            "a b",
            "",
            "/run",
        ])
    {
        assert_eq!(fault(text), None, "{text}");
    }
}

#[test]
fn names_that_are_gone_are_reported() {
    for text in ["docs/gone.md", "runtime/src/gone.rs", "old_name", "Door::let_out", "connection::gone"]
        .into_iter()
        .chain(["isp_runtime::connection::Gate", "isp_runtime::hidden_here", "isp_runtime::let_in::gone()"])
    {
        assert_eq!(fault(text), Some(format!("there is no {text}")), "{text}");
    }
}

#[test]
fn comments_are_read_line_by_line_and_without_their_blocks() {
    let source = "/// One `a_b`, `c` and an odd ` one.\n/// `x_y`\n//! ```text\n//! `not_this`\n//! ```\nlet s = \"`nor_this`\";\n// `last_one`\n";
    let found: Vec<_> = spans(source).into_iter().map(|piece| (piece.line, piece.text)).collect();
    assert_eq!(found, [(2, "x_y".to_owned()), (7, "last_one".to_owned())]);
}
