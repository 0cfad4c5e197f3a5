//! The notes of a release: the changes from CHANGELOG.md, the images, and how to get them to a
//! cluster.

use std::fmt::Write as _;

use super::changelog::Section;
use super::images::{Image, Variant};
use super::{IMAGES, Registry, Release, chart, install};
use crate::dist::Platform;

/// The notes, in Markdown.
pub(super) fn notes(
    release: &Release,
    section: &Section,
    images: &[Image],
    platforms: &[Platform],
) -> String {
    let Release { version, registry, source, .. } = release;
    let state = if section.unreleased { ", not released yet" } else { "" };
    let (commit, changes, table) = (&source.commit, &section.text, table(images));
    let (missing, ways) = (missing(platforms), ways(registry, images));
    let (install, chart) = (install::OVERLAYS[0].1, chart::file_name(version));
    format!(
        "# ingress-source-preserve {version}{state}

Commit {commit}.

## Changes

{changes}

## Images

{table}{missing}
Get the images to the cluster in one of these ways:

```sh
{ways}```

## Install

`sha256sum --check SHA256SUMS` verifies the files. Install with one of:

```sh
kubectl apply --server-side -f {install}
helm install sourcepreserve {chart} --namespace sourcepreserve-system --create-namespace
```
"
    )
}

/// The images with their digests and sizes.
fn table(images: &[Image]) -> String {
    let mut table = "| image | digest | platform | to pull | on disk |\n|---|---|---|---|---|\n".to_owned();
    for image in images {
        for Variant { platform, compressed, unpacked } in &image.variants {
            let (pulled, unpacked) = (megabytes(*compressed), megabytes(*unpacked));
            let (reference, digest) = (&image.reference, &image.digest);
            let _ = writeln!(table, "| `{reference}` | `{digest}` | {platform} | {pulled} | {unpacked} |");
        }
    }
    table
}

/// The platforms that the release does not have, and why.
fn missing(platforms: &[Platform]) -> String {
    let missing = Platform::ALL.iter().filter(|platform| !platforms.contains(platform));
    missing.fold(String::new(), |text, platform| {
        let tuple = platform.tuple();
        text + &format!(
            "\nThis release has nothing for {platform}: the machine that built it does not have the target\n\
             `{tuple}`.\n"
        )
    })
}

/// The commands that bring the images to a cluster.
fn ways(registry: &Registry, images: &[Image]) -> String {
    let mut ways = format!(
        "kind load image-archive {IMAGES}                    # kind\n\
         ctr --namespace k8s.io images import {IMAGES}       # kubeadm and others with containerd: on each node\n"
    );
    // Nobody can push to the registry of the repository's manifests.
    for image in images.iter().filter(|_| registry.as_str() != Registry::IN_MANIFESTS) {
        let reference = &image.reference;
        let _ = writeln!(
            ways,
            "skopeo copy --all --preserve-digests oci-archive:{IMAGES}:{reference} docker://{reference}"
        );
    }
    ways
}

/// A size in megabytes, with one decimal place.
pub(super) fn megabytes(bytes: u64) -> String {
    let tenths = (bytes + 50_000) / 100_000;
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{image, release};
    use super::*;

    fn section(unreleased: bool) -> Section {
        Section {
            unreleased,
            text: "### Added\n\n- One.\n\n### Fixed\n\n- Two.".to_owned(),
            changes: Vec::new(),
        }
    }

    #[test]
    fn the_notes_say_what_changed_and_how_to_get_the_images() {
        let images = [image("r.example/isp", "operator"), image("r.example/isp", "webhook")];
        let notes = notes(&release("r.example/isp"), &section(true), &images, &[Platform::Amd64]);
        for expected in [
            "# ingress-source-preserve 0.1.0, not released yet\n\nCommit c0ffee.\n\n## Changes\n\n### Added\n",
            "| `r.example/isp/operator:0.1.0` | `sha256:0a0a",
            " | linux/amd64 | 3.1 MB | 8.0 MB |\n",
            "nothing for linux/arm64: the machine that built it does not have the target\n`aarch64-unknown-linux-gnu`",
            "oci-archive:images.tar:r.example/isp/webhook:0.1.0 docker://r.example/isp/webhook:0.1.0\n```\n",
            "kubectl apply --server-side -f install.yaml\n",
        ] {
            assert!(notes.contains(expected), "{expected}\n\nis not in\n\n{notes}");
        }
        assert!(!notes.contains("localhost/"), "{notes}");
    }

    #[test]
    fn a_release_for_every_platform_has_nothing_to_regret() {
        let notes = notes(&release("r.example/isp"), &section(false), &[], &Platform::ALL);
        assert!(
            !notes.contains("nothing for") && notes.starts_with("# ingress-source-preserve 0.1.0\n"),
            "{notes}"
        );
    }

    #[test]
    fn images_that_no_registry_has_are_not_pushed() {
        let registry = Registry::IN_MANIFESTS;
        let notes = notes(&release(registry), &section(true), &[image(registry, "operator")], &Platform::ALL);
        assert!(notes.contains("kind load image-archive images.tar") && !notes.contains("skopeo"), "{notes}");
    }

    #[test]
    fn sizes_are_rounded() {
        assert_eq!(
            [megabytes(0), megabytes(1_449_999), megabytes(15_000_000)],
            ["0.0 MB", "1.4 MB", "15.0 MB"]
        );
    }
}
