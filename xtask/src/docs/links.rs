//! Checks links: relative links point to existing files and headings, other links are https
//! addresses.
//!
//! Nothing is fetched, so dead links to other hosts are not found.

use std::collections::BTreeMap;

use super::Problem;
use super::markdown::Page;

#[cfg(test)]
mod tests;

/// Finds broken links. `exists` tells whether a path exists in the repository.
pub(super) fn check(pages: &BTreeMap<String, Page>, exists: &impl Fn(&str) -> bool) -> Vec<Problem> {
    let mut problems = Vec::new();
    for page in pages.values() {
        for link in &page.links {
            if let Err(what) = follow(pages, page, &link.text, exists) {
                problems.push(Problem::at(&page.path, link.line, what));
            }
        }
    }
    problems
}

/// Checks a path relative to the root of the repository, and a heading. The error says what is
/// wrong.
pub(super) fn resolve(
    pages: &BTreeMap<String, Page>,
    path: &str,
    anchor: Option<&str>,
    exists: &impl Fn(&str) -> bool,
) -> Result<(), String> {
    if !exists(path) {
        return Err(format!("there is no {path}"));
    }
    match (anchor, pages.get(path)) {
        (None, _) => Ok(()),
        (Some(anchor), Some(page)) if page.anchors.iter().any(|known| known == anchor) => Ok(()),
        (Some(anchor), _) => Err(format!("there is no heading #{anchor} in {path}")),
    }
}

fn follow(
    pages: &BTreeMap<String, Page>,
    page: &Page,
    target: &str,
    exists: &impl Fn(&str) -> bool,
) -> Result<(), String> {
    if let Some((scheme, rest)) = target.split_once("://") {
        let host = rest.split(['/', '#', '?']).next().unwrap_or_default();
        let sound = scheme == "https" && host.contains('.') && !rest.contains(char::is_whitespace);
        return if sound { Ok(()) } else { Err(format!("{target} is not an https URL")) };
    }
    let (path, anchor) = match target.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor)),
        None => (target, None),
    };
    let path = if path.is_empty() { page.path.clone() } else { beside(&page.path, path)? };
    resolve(pages, &path, anchor, exists)
}

/// Resolves a path relative to a page into a path of the repository.
fn beside(page: &str, path: &str) -> Result<String, String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop().ok_or_else(|| format!("{path} leads out of the repository"))?;
            }
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}
