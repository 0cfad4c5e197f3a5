use super::{Change, ChangelogError, section};

const CHANGELOG: &str = "\
# Changelog

## [Unreleased]

### Added

- A thing that
  needs two lines.

### Fixed

- Another.

## [0.1.0] - 2026-01-31

### Added

- The first.
";

fn change(kind: &str, description: &str) -> Change {
    Change { kind: kind.to_owned(), description: description.to_owned() }
}

#[test]
fn a_version_has_its_section_and_a_version_to_come_the_unreleased_one() {
    let first = section(CHANGELOG, "0.1.0").unwrap();
    assert!(!first.unreleased);
    assert_eq!(first.text, "### Added\n\n- The first.");
    assert_eq!(first.changes, [change("added", "The first.")]);

    let next = section(CHANGELOG, "0.2.0").unwrap();
    assert!(next.unreleased);
    let expected = [change("added", "A thing that needs two lines."), change("fixed", "Another.")];
    assert_eq!(next.changes, expected);
}

#[test]
fn a_changelog_that_says_nothing_is_an_error() {
    let error = |text| section(text, "1.0.0").unwrap_err();
    assert_eq!(error("# Changelog\n"), ChangelogError::NoSection("1.0.0".to_owned()));
    assert_eq!(error("## [1.0.0]\n\n### Added\n"), ChangelogError::NoChange("1.0.0".to_owned()));
    assert_eq!(
        error("## [1.0.0]\n### New\n- One.\n").to_string(),
        "CHANGELOG.md has the heading \"New\"; use one of Added, Changed, Deprecated, Removed, Fixed, Security"
    );
}

#[test]
fn the_changelog_of_the_repository_can_be_read() {
    let text = include_str!("../../../../CHANGELOG.md");
    assert!(!section(text, env!("CARGO_PKG_VERSION")).unwrap().changes.is_empty());
}
