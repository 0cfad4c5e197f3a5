use std::fs;

use super::images::{Image, Variant};
use super::*;

/// A release of a small commit.
pub(super) fn release(registry: &str) -> Release {
    Release {
        version: "0.1.0",
        registry: registry.parse().unwrap(),
        home: Home::IN_CARGO.parse().unwrap(),
        source: Source {
            commit: "c0ffee".to_owned(),
            seconds: 1_700_000_000,
            time: "2023-11-14T22:13:20Z".to_owned(),
        },
    }
}

/// An image of that release.
pub(super) fn image(registry: &str, program: &str) -> Image {
    let variant = Variant { platform: "linux/amd64".to_owned(), compressed: 3_100_000, unpacked: 8_000_000 };
    Image {
        reference: format!("{registry}/{program}:0.1.0"),
        digest: format!("sha256:{}", "0a".repeat(32)),
        variants: vec![variant],
    }
}

#[test]
fn only_the_directory_of_a_release_is_emptied() {
    let out = std::env::temp_dir().join(format!("xtask-release-{}", std::process::id()));
    prepare(&out).unwrap();
    prepare(&out).unwrap();
    fs::write(out.join("mine.txt"), "").unwrap();
    let error = prepare(&out).unwrap_err();
    assert!(error.to_string().contains("other files than a release; choose another directory"), "{error}");
    fs::write(out.join(CHECKSUMS), "").unwrap();
    prepare(&out).unwrap();
    assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
    fs::remove_dir(&out).unwrap();
}
