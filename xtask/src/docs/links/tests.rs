use std::collections::BTreeMap;

use super::check;
use crate::docs::markdown::Page;

/// The problems with the links of a page, next to a README with one heading.
fn problems(text: &str) -> Vec<String> {
    let pages = [Page::read("docs/a.md", text), Page::read("README.md", "# Top")];
    let pages: BTreeMap<_, _> = pages.into_iter().map(|page| (page.path.clone(), page)).collect();
    let exists = |path: &str| ["docs/a.md", "README.md", "crds", "docs/images/x.svg"].contains(&path);
    check(&pages, &exists).iter().map(ToString::to_string).collect()
}

#[test]
fn links_that_lead_somewhere_are_fine() {
    let text = "# Here\n[a](#here) [b](../README.md#top) [c](../crds/) ![d](images/x.svg) [e](https://kubernetes.io/docs/)";
    assert_eq!(problems(text), [""; 0]);
}

#[test]
fn a_file_that_is_not_there_is_named_with_its_place() {
    assert_eq!(problems("one\n[a](b.md)"), ["docs/a.md:2: there is no docs/b.md"]);
}

#[test]
fn a_heading_that_is_not_there_is_named() {
    assert_eq!(
        problems("[a](#there) [b](../README.md#bottom) [c](../crds#x)"),
        [
            "docs/a.md:1: there is no heading #there in docs/a.md",
            "docs/a.md:1: there is no heading #bottom in README.md",
            "docs/a.md:1: there is no heading #x in crds",
        ]
    );
}

#[test]
fn what_is_no_https_address_or_leads_out_is_refused() {
    assert_eq!(
        problems("[a](http://kubernetes.io) [b](https://nowhere) [c](../../etc)"),
        [
            "docs/a.md:1: http://kubernetes.io is not an https URL",
            "docs/a.md:1: https://nowhere is not an https URL",
            "docs/a.md:1: ../../etc leads out of the repository",
        ]
    );
}
