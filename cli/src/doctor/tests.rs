#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod asked;
mod beside;
pub(crate) mod faults;
mod large;
mod lists;
mod mesh_faults;
mod untouched;
mod webhook;
pub(crate) mod world;

use std::collections::BTreeSet;

use super::finding::Code;

#[test]
fn a_code_means_one_thing() {
    let codes: BTreeSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(codes.len(), Code::ALL.len());
}

#[test]
fn the_runbook_has_a_heading_for_every_code_and_no_other() {
    let text = include_str!("../../../docs/doctor.md");
    let headings: Vec<(&str, &str)> = text
        .lines()
        .filter_map(|line| line.strip_prefix("## ")?.split_once(' '))
        .filter(|(code, _)| code.starts_with("ISP"))
        .collect();
    let mut codes: Vec<(&str, &str)> = Code::ALL.iter().map(|code| (code.as_str(), code.title())).collect();
    codes.sort_unstable();
    assert_eq!(headings, codes, "headings of docs/doctor.md, in the order of the codes");
}
