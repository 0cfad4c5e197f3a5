use super::{Drift, Files, GeneratedError, compare};

fn files(content: &[(&str, &str)]) -> Files {
    content.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_owned())).collect()
}

#[test]
fn the_same_files_are_up_to_date() {
    let both = files(&[("a.yaml", "one"), ("b.yaml", "two")]);
    assert_eq!(compare("crds", &both, &both), []);
    assert_eq!(compare("crds", &files(&[]), &files(&[])), []);
}

#[test]
fn missing_extra_and_different_files_are_each_named() {
    let committed = files(&[("different.yaml", "old"), ("extra.yaml", "x"), ("same.yaml", "s")]);
    let generated = files(&[("different.yaml", "new"), ("missing.yaml", "m"), ("same.yaml", "s")]);

    assert_eq!(
        compare("crds", &committed, &generated),
        [
            Drift::Different("crds/different.yaml".to_owned()),
            Drift::Extra("crds/extra.yaml".to_owned()),
            Drift::Missing("crds/missing.yaml".to_owned()),
        ]
    );
}

#[test]
fn the_message_names_the_file_and_the_command() {
    let message = GeneratedError::OutOfDate(vec![Drift::Different("crds/a.yaml".to_owned())]).to_string();

    assert_eq!(message, "crds/a.yaml differs from its source; run `cargo xtask generate`");
}
