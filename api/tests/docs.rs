//! The docs match the API: every example parses and has only known fields, and the runbook covers
//! every condition.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::fs;
use std::path::{Path, PathBuf};

use isp_api::Reason;
use isp_api::names::condition;
use isp_api::{IngressSourceNode, IngressSourcePreserve, crd};
use serde::Deserialize;
use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// README and the pages of docs/.
fn pages() -> Vec<PathBuf> {
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.chain([root().join("README.md")]).collect()
}

/// The YAML documents of a page, each with the line at which its block starts.
fn documents(text: &str) -> Vec<(usize, Value)> {
    let mut found = Vec::new();
    let mut block: Option<(usize, String)> = None;
    for (index, line) in text.lines().enumerate() {
        match block.take() {
            None if line == "```yaml" => block = Some((index + 1, String::new())),
            Some((at, yaml)) if line == "```" => {
                for document in serde_yaml::Deserializer::from_str(&yaml) {
                    let value =
                        Value::deserialize(document).unwrap_or_else(|error| panic!("line {at}: {error}"));
                    found.push((at, value));
                }
            }
            Some((at, yaml)) => block = Some((at, yaml + line + "\n")),
            None => {}
        }
    }
    assert!(block.is_none(), "a block is not closed");
    found
}

/// The path of the first field that is not in the schema.
fn unknown(value: &Value, schema: &Value, path: &str) -> Option<String> {
    match value {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let path = format!("{path}.{name}");
            let named = &schema["properties"][name];
            let other = &schema["additionalProperties"];
            match (named.is_object(), other.is_object()) {
                (true, _) => unknown(value, named, &path),
                (false, true) => unknown(value, other, &path),
                (false, false) => Some(path),
            }
        }),
        Value::Array(items) => items.iter().find_map(|item| unknown(item, &schema["items"], path)),
        _ => None,
    }
}

/// The schema of a kind's `spec` or `status`.
fn schema(kind: &str, part: &str) -> Value {
    let definition = crd::all().into_iter().find(|definition| definition.spec.names.kind == kind).unwrap();
    let definition = serde_json::to_value(definition).unwrap();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][part].clone()
}

/// Whether the document is of one of our kinds, or a part of an IngressSourcePreserve. If so, it
/// must be valid.
fn is_ours(document: &Value) -> bool {
    let kind = document["kind"].as_str();
    let kind = match (kind, document["apiVersion"].as_str()) {
        (None, _) if document.get("spec").is_some() => "IngressSourcePreserve",
        (Some("IngressSourcePreserve"), Some("sourcepreserve.io/v1alpha1")) => {
            serde_json::from_value::<IngressSourcePreserve>(document.clone()).unwrap();
            "IngressSourcePreserve"
        }
        (Some("IngressSourceNode"), Some("sourcepreserve.io/v1alpha1")) => {
            serde_json::from_value::<IngressSourceNode>(document.clone()).unwrap();
            "IngressSourceNode"
        }
        (kind, version) => {
            let claims = version.is_some_and(|version| version.starts_with("sourcepreserve.io"));
            assert!(!claims, "there is no {kind:?} of {version:?}");
            return false;
        }
    };
    for part in ["spec", "status"] {
        let given = document.get(part).unwrap_or(&Value::Null);
        assert_eq!(unknown(given, &schema(kind, part), part), None);
    }
    true
}

#[test]
fn every_example_of_our_kinds_can_be_read_and_has_no_unknown_field() {
    let mut ours = 0;
    for page in pages() {
        for (line, document) in documents(&fs::read_to_string(&page).unwrap()) {
            println!("{}:{line}", page.display());
            ours += usize::from(is_ours(&document));
        }
    }
    assert!(ours >= 4, "only {ours} examples were found");
}

#[test]
fn an_unknown_field_is_found_wherever_it_is() {
    let schema = schema("IngressSourcePreserve", "spec");
    let find = |yaml: &str| unknown(&serde_yaml::from_str(yaml).unwrap(), &schema, "spec");
    assert_eq!(find("ingressNodes: {selector: {matchLabels: {a.b/c: d}}}"), None);
    assert_eq!(find("ingressNode: {}").unwrap(), "spec.ingressNode");
    assert_eq!(find("services: [{namespace: a, names: b}]").unwrap(), "spec.services.names");
    assert_eq!(
        find("nodePools: [{selector: {matchLabel: {}}}]").unwrap(),
        "spec.nodePools.selector.matchLabel"
    );
}

#[test]
fn every_condition_and_reason_of_the_api_has_its_place_in_the_runbook() {
    let runbook = fs::read_to_string(root().join("docs/operations.md")).unwrap();
    let conditions = [
        condition::READY,
        condition::PROGRESSING,
        condition::DEGRADED,
        condition::CONFLICT,
        condition::CHECKED,
        condition::AGENTS_READY,
        condition::LABELLED,
        condition::ACKNOWLEDGED,
        condition::LOCAL_POLICY_SET,
        condition::SIDECARS_CONSISTENT,
    ];
    for condition in conditions {
        let heading = format!("### {condition}");
        assert!(runbook.lines().any(|line| line == heading), "there is no heading {heading}");
    }
    // No action is needed, or an Event repeats a condition.
    let nothing_to_do = [
        Reason::Acknowledged,
        Reason::AgentsReady,
        Reason::Consistent,
        Reason::FellBack,
        Reason::LocalPolicySet,
        Reason::None,
        Reason::Open,
        Reason::StaleSidecars,
    ];
    for reason in Reason::ALL.iter().filter(|reason| !nothing_to_do.contains(reason)) {
        assert!(runbook.contains(&format!("`{reason}`")), "{reason} is not in the runbook");
    }
}

#[test]
fn what_argo_cd_is_told_goes_by_conditions_that_there_are() {
    let script = fs::read_to_string(root().join("docs/gitops/health.lua")).unwrap();
    let calls = ["holds(\"", "message(\"", "condition(\""];
    let named =
        calls.iter().flat_map(|call| script.split(call).skip(1)).map(|rest| rest.split('"').next().unwrap());
    let known = [
        condition::READY,
        condition::PROGRESSING,
        condition::DEGRADED,
        condition::CONFLICT,
        condition::AGENTS_READY,
    ];
    let mut count = 0;
    for name in named {
        count += 1;
        assert!(known.contains(&name), "{name} is no condition");
    }
    assert!(count >= 8, "only {count} names were found");
}

#[test]
fn the_tables_of_pods_have_as_many_as_the_docs_say() {
    let page = fs::read_to_string(root().join("docs/webhook.md")).unwrap();
    // Ignores line breaks.
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for table in ["api/tests/sidecars.yaml", "api/tests/redirects.yaml"] {
        let text = fs::read_to_string(root().join(table)).unwrap();
        let pods: Vec<Value> = serde_yaml::from_str(&text).unwrap();
        let said = format!("[this table](../{table}) of {} pods", pods.len());
        assert!(page.contains(&said), "there are {} in {table}", pods.len());
    }
}
