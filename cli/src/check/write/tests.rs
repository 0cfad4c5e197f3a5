#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_file_is_written_whole_and_nothing_else_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("isp.yaml");
    write(&path, "one\n", false).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\n");
    assert_eq!(names(directory.path()), ["isp.yaml"]);
}

#[test]
fn an_existing_file_is_replaced_only_by_force() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("isp.yaml");
    fs::write(&path, "old\n").unwrap();
    let error = write(&path, "new\n", false).unwrap_err();
    assert!(error.to_string().contains("--force"), "{error}");
    assert!(refuse_existing(&path).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "old\n");
    write(&path, "new\n", true).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new\n");
    assert_eq!(names(directory.path()), ["isp.yaml"]);
}

#[test]
fn a_directory_that_does_not_exist_is_named() {
    let error = write(Path::new("/nowhere/isp.yaml"), "", false).unwrap_err();
    assert!(error.to_string().contains("/nowhere/isp.yaml"), "{error}");
}
