use std::collections::BTreeMap;

use super::{Measured, check};
use crate::docs::markdown::Page;

fn problems(text: &str) -> Vec<String> {
    let file: Measured = serde_yaml::from_str(
        "{command: cargo xtask bench webhook, machine: 2 cores, date: 2026-01-31, figures: {p50: 0.2 ms}}",
    )
    .unwrap();
    let page = Page::read("a.md", text);
    let measured = BTreeMap::from([("webhook".to_owned(), file)]);
    check([&page].into_iter(), &measured).iter().map(ToString::to_string).collect()
}

#[test]
fn a_figure_that_equals_its_source_is_fine() {
    assert_eq!(problems("It takes 0.2 ms <!-- measured: webhook.p50 --> at the median."), [""; 0]);
}

#[test]
fn a_figure_that_differs_is_found_also_when_it_ends_in_the_same_way() {
    let what = "webhook.p50 is 0.2 ms in docs/measured, but the text before the marker ends differently";
    for figure in ["0.3 ms", "10.2 ms"] {
        assert_eq!(
            problems(&format!("{figure} <!-- measured: webhook.p50 -->")),
            [format!("a.md:1: {what}")]
        );
    }
}

#[test]
fn a_figure_without_a_source_and_a_source_without_a_figure_are_found() {
    assert_eq!(
        problems("1 s <!-- measured: lab.up -->"),
        ["a.md:1: docs/measured has no figure lab.up", "docs/measured/webhook.yaml:1: no page uses p50",]
    );
}
