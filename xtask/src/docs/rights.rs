//! Checks permissions: the docs' tables of what each account may do match the manifests, one by
//! one.
//!
//! The marker before a table names its account, as in `<!-- rights: namespace/account -->`. The
//! first three columns are the scope (a namespace, or `cluster`), the verbs, and the resources as
//! `resource.group`; resource names follow after the word `named`. A role that is not the project's
//! own has the verb `bound to`. The other columns are free text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_yaml::Value;

#[cfg(test)]
mod tests;

const MARKER: &str = "<!-- rights:";
const CLUSTER: &str = "cluster";
const BOUND: &str = "bound to";

/// One permission of an account.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Grant {
    /// Namespace and name.
    account: String,
    /// A namespace, or [`CLUSTER`].
    place: String,
    /// A verb, or [`BOUND`] if the resource is a role.
    verb: String,
    resource: String,
    name: Option<String>,
}

impl fmt::Display for Grant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { account, place, verb, resource, name } = self;
        write!(out, "{account}: in {place}, {verb} {resource}")?;
        name.iter().try_for_each(|name| write!(out, " named {name}"))
    }
}

/// The permissions that a page documents, by line.
pub(super) fn documented(text: &str) -> Vec<(usize, Result<Vec<Grant>, String>)> {
    let mut rows = Vec::new();
    let mut account: Option<&str> = None;
    let mut rows_seen = 0;
    for (index, line) in text.lines().enumerate() {
        if let Some(rest) = line.strip_prefix(MARKER) {
            account = rest.split("-->").next().map(str::trim);
            rows_seen = 0;
        } else if let (Some(of), true) = (account, line.starts_with('|')) {
            rows_seen += 1;
            // Skips the heading and the separator line.
            if rows_seen > 2 {
                rows.push((index + 1, row(of, line)));
            }
        } else if !line.trim().is_empty() || rows_seen > 0 {
            account = None;
        }
    }
    rows
}

fn row(account: &str, line: &str) -> Result<Vec<Grant>, String> {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [place, verbs, what, ..] = cells[..] else {
        return Err("a permission needs at least three columns: where, verbs, resources".to_owned());
    };
    let place = place.trim_matches('`').to_owned();
    let (resources, names) = what.split_once(" named ").unwrap_or((what, ""));
    let resources = spans(resources);
    if resources.is_empty() || verbs.is_empty() {
        return Err("a permission needs verbs, and resources between backticks".to_owned());
    }
    let verbs = verbs.trim_matches('`').split(", ");
    Ok(expand(account, &place, verbs, &resources, &spans(names)))
}

/// The texts between backticks.
fn spans(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

fn expand<'a>(
    account: &str,
    place: &str,
    verbs: impl Iterator<Item = &'a str>,
    resources: &[&str],
    names: &[&str],
) -> Vec<Grant> {
    let names: Vec<Option<&str>> =
        if names.is_empty() { vec![None] } else { names.iter().copied().map(Some).collect() };
    let mut grants = Vec::new();
    for verb in verbs {
        for resource in resources {
            grants.extend(names.iter().map(|name| Grant {
                account: account.to_owned(),
                place: place.to_owned(),
                verb: verb.to_owned(),
                resource: (*resource).to_owned(),
                name: name.map(str::to_owned),
            }));
        }
    }
    grants
}

/// The permissions that the manifests grant to the accounts they bind.
pub(super) fn granted(documents: &[Value]) -> BTreeSet<Grant> {
    let of_kind = |kinds: [&'static str; 2]| {
        documents.iter().filter(move |document| kinds.contains(&word(&document["kind"])))
    };
    let roles: Roles<'_> = of_kind(["Role", "ClusterRole"])
        .map(|role| {
            let metadata = &role["metadata"];
            let key = [&role["kind"], &metadata["namespace"], &metadata["name"]].map(word);
            (key, &role["rules"])
        })
        .collect();
    of_kind(["RoleBinding", "ClusterRoleBinding"]).flat_map(|binding| bound(binding, &roles)).collect()
}

/// The roles' rules, by kind, namespace and name.
type Roles<'a> = BTreeMap<[&'a str; 3], &'a Value>;

/// The permissions that one binding grants.
fn bound(binding: &Value, roles: &Roles<'_>) -> Vec<Grant> {
    let namespace = word(&binding["metadata"]["namespace"]);
    let place = if namespace.is_empty() { CLUSTER } else { namespace };
    let (kind, name) = (word(&binding["roleRef"]["kind"]), word(&binding["roleRef"]["name"]));
    let found = roles.get(&[kind, if kind == "Role" { namespace } else { "" }, name]);
    let mut grants = Vec::new();
    for subject in list(&binding["subjects"]) {
        let account = format!("{}/{}", word(&subject["namespace"]), word(&subject["name"]));
        match found {
            None => grants.extend(expand(&account, place, [BOUND].into_iter(), &[name], &[])),
            Some(role) => grants.extend(list(role).flat_map(|rule| of_rule(&account, place, rule))),
        }
    }
    grants
}

fn of_rule(account: &str, place: &str, rule: &Value) -> Vec<Grant> {
    let names: Vec<&str> = list(&rule["resourceNames"]).map(word).collect();
    let in_groups = list(&rule["apiGroups"]).map(word).flat_map(|group| {
        let resources = list(&rule["resources"]).map(word).map(move |resource| in_group(resource, group));
        resources.collect::<Vec<_>>()
    });
    let resources: Vec<String> = in_groups.collect();
    let resources: Vec<&str> = resources.iter().map(String::as_str).collect();
    expand(account, place, list(&rule["verbs"]).map(word), &resources, &names)
}

fn in_group(resource: &str, group: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_sequence().into_iter().flatten()
}

/// The differences, as line and message. Undocumented permissions are reported at the first line.
pub(super) fn compare(text: &str, granted: &BTreeSet<Grant>) -> Vec<(usize, String)> {
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for (line, row) in documented(text) {
        match row {
            Err(problem) => problems.push((line, problem)),
            Ok(grants) => {
                for grant in grants {
                    if !granted.contains(&grant) {
                        problems.push((line, format!("no manifest grants this: {grant}")));
                    } else if !seen.insert(grant.clone()) {
                        problems.push((line, format!("this permission is listed twice: {grant}")));
                    }
                }
            }
        }
    }
    let missing = granted.iter().filter(|grant| !seen.contains(grant));
    problems.extend(missing.map(|grant| (1, format!("no table of permissions lists this: {grant}"))));
    problems
}
