//! Checks of the manifests: every file parses, no RBAC rule has a wildcard, and names agree.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Every document of every YAML file under `manifests`, except the chart, whose templates are
/// generated from the others.
fn documents() -> Vec<(PathBuf, Value)> {
    let documents = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let read = |document| {
            Value::deserialize(document).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        serde_yaml::Deserializer::from_str(&text)
            .map(|document| (path.clone(), read(document)))
            .collect::<Vec<_>>()
    };
    let manifests = root().join("manifests");
    let is_read = |path: &PathBuf| {
        !path.starts_with(manifests.join("chart")) && path.extension().is_none_or(|end| end == "yaml")
    };
    files(&manifests).into_iter().filter(is_read).flat_map(documents).collect()
}

fn words(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().map(|word| word.as_str().unwrap()).collect()
}

#[test]
fn no_right_is_a_wildcard() {
    let mut rules = 0;
    for (path, document) in documents() {
        for rule in document["rules"].as_array().into_iter().flatten() {
            rules += 1;
            for what in ["apiGroups", "resources", "verbs"] {
                let words = words(&rule[what]);
                assert!(!words.is_empty(), "{}: {what} of {rule}", path.display());
                assert!(!words.iter().any(|word| word.contains('*')), "{}: {rule}", path.display());
            }
        }
    }
    assert!(rules > 10, "only {rules} rules were found");
}

#[test]
fn no_right_reaches_secrets_or_lets_anybody_become_more_than_they_are() {
    for (path, document) in documents() {
        for rule in document["rules"].as_array().into_iter().flatten() {
            let (resources, verbs) = (words(&rule["resources"]), words(&rule["verbs"]));
            // Only the webhook's own Secret. `resourceNames` does not restrict `create`, and a new
            // Secret can be made to contain any ServiceAccount's token.
            if resources.contains(&"secrets") {
                assert!(!words(&rule["resourceNames"]).is_empty(), "{}: {rule}", path.display());
                assert!(
                    !verbs.contains(&"create") && !verbs.contains(&"patch"),
                    "{}: {rule}",
                    path.display()
                );
            }
            for resource in ["serviceaccounts/token", "pods/exec", "pods/ephemeralcontainers"] {
                assert!(!resources.contains(&resource), "{}: {rule}", path.display());
            }
            for verb in ["escalate", "impersonate", "deletecollection"] {
                assert!(!verbs.contains(&verb), "{}: {rule}", path.display());
            }
            // The operator binds these roles to the agents' ServiceAccount. `bind` on any other
            // role would allow escalation.
            if verbs.contains(&"bind") {
                let names = words(&rule["resourceNames"]);
                assert_eq!(
                    names,
                    ["sourcepreserve-proxy-agent", "system:node-proxier"],
                    "{}",
                    path.display()
                );
            }
        }
    }
}

/// Otherwise uninstalling would remove them from agents that keep running.
#[test]
fn the_agents_account_and_its_rights_are_no_part_of_what_is_installed() {
    let (_, base) = documents()
        .into_iter()
        .find(|(path, _)| path.ends_with("manifests/base/kustomization.yaml"))
        .unwrap();
    assert!(!words(&base["resources"]).contains(&"../agent"));
    let agents: BTreeSet<[String; 2]> = documents()
        .iter()
        .filter(|(path, _)| path.parent().is_some_and(|parent| parent.ends_with("manifests/agent")))
        .filter(|(_, document)| document["kind"] != "Kustomization")
        .map(|(_, document)| name(document))
        .collect();
    assert_eq!(agents.len(), 6);
    let elsewhere = documents()
        .into_iter()
        .filter(|(path, _)| !path.parent().is_some_and(|parent| parent.ends_with("manifests/agent")));
    for (path, document) in elsewhere {
        assert!(!agents.contains(&name(&document)), "{}", path.display());
    }
}

fn name(document: &Value) -> [String; 2] {
    [&document["kind"], &document["metadata"]["name"]]
        .map(|word| word.as_str().unwrap_or_default().to_owned())
}

#[test]
fn connections_reach_the_ports_that_a_program_has_and_no_others() {
    // Deployments in examples are the users'.
    let examples = root().join("manifests/examples");
    let all: Vec<_> = documents().into_iter().filter(|(path, _)| !path.starts_with(&examples)).collect();
    let of_kind = |kind: &'static str| {
        all.iter().map(|(_, document)| document).filter(move |document| document["kind"] == kind)
    };
    let mut programs = 0;
    // Deployments in overlays are patches.
    for deployment in of_kind("Deployment").filter(|deployment| deployment["spec"]["selector"].is_object()) {
        programs += 1;
        let selector = &deployment["spec"]["selector"];
        let mut policies =
            of_kind("NetworkPolicy").filter(|policy| policy["spec"]["podSelector"] == *selector);
        let policy = policies.next().unwrap_or_else(|| panic!("no policy for {selector}"));
        assert!(policies.next().is_none());
        assert_eq!(policy["metadata"]["namespace"], deployment["metadata"]["namespace"]);
        let numbers = |ports: &Value, field: &str| -> Vec<u64> {
            ports.as_array().into_iter().flatten().map(|port| port[field].as_u64().unwrap()).collect()
        };
        let rules = policy["spec"]["ingress"].as_array().unwrap().iter();
        let open: BTreeSet<_> = rules.flat_map(|rule| numbers(&rule["ports"], "port")).collect();
        let containers = deployment["spec"]["template"]["spec"]["containers"].as_array().unwrap().iter();
        let served: BTreeSet<_> =
            containers.flat_map(|one| numbers(&one["ports"], "containerPort")).collect();
        assert_eq!(open, served, "{selector}");
    }
    assert_eq!(programs, 2);
}

#[test]
fn every_file_of_the_base_is_listed() {
    let base = root().join("manifests/base");
    let all = documents();
    let (_, kustomization) = all.iter().find(|(path, _)| *path == base.join("kustomization.yaml")).unwrap();
    let listed: BTreeSet<_> = words(&kustomization["resources"]).into_iter().collect();
    for path in files(&base).iter().filter(|path| !path.ends_with("kustomization.yaml")) {
        assert!(listed.contains(path.file_name().unwrap().to_str().unwrap()), "{}", path.display());
    }
    let crds = fs::read_to_string(root().join("crds/Kustomization")).unwrap();
    for path in files(&root().join("crds")).iter().filter(|path| !path.ends_with("Kustomization")) {
        assert!(crds.contains(path.file_name().unwrap().to_str().unwrap()), "{}", path.display());
    }
}

#[test]
fn the_installed_version_is_this_one() {
    let tags: Vec<Value> = documents()
        .into_iter()
        .filter(|(path, _)| {
            path.ends_with("default/kustomization.yaml") || path.ends_with("cleanup/kustomization.yaml")
        })
        .flat_map(|(_, document)| document["images"].as_array().unwrap().clone())
        .map(|image| image["newTag"].clone())
        .collect();
    assert_eq!(tags, [env!("CARGO_PKG_VERSION"); 5]);
    let chart = fs::read_to_string(root().join("manifests/chart/Chart.yaml")).unwrap();
    let chart: Value = serde_yaml::from_str(&chart).unwrap();
    assert_eq!([&chart["version"], &chart["appVersion"]], [env!("CARGO_PKG_VERSION"); 2]);
}
