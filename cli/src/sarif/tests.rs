//! The log has what the schema of SARIF 2.1.0 requires, and nothing that it does not know. The
//! schema itself is too large to keep here: these are its rules for the parts that are written.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use super::*;
use crate::doctor::dump;

/// Of a part of the schema: its required properties, and all others that are written here.
type Part = (&'static [&'static str], &'static [&'static str]);

const LOG: Part = (&["version", "runs"], &["$schema"]);
const RUN: Part = (&["tool"], &["results", "columnKind"]);
const TOOL: Part = (&["driver"], &[]);
const DRIVER: Part = (&["name"], &["version", "informationUri", "rules"]);
const RULE: Part =
    (&["id"], &["name", "shortDescription", "fullDescription", "help", "helpUri", "defaultConfiguration"]);
const MULTIFORMAT: Part = (&["text"], &["markdown"]);
const CONFIGURATION: Part = (&[], &["level"]);
const RESULT: Part = (&["message"], &["ruleId", "ruleIndex", "level", "locations", "partialFingerprints"]);
const MESSAGE: Part = (&["text"], &[]);
const LOCATION: Part = (&[], &["logicalLocations", "physicalLocation"]);
const LOGICAL: Part = (&[], &["name", "fullyQualifiedName", "kind"]);
const PHYSICAL: Part = (&["artifactLocation"], &["region"]);
const ARTIFACT: Part = (&["uri"], &[]);
const REGION: Part = (&["startLine"], &[]);
const LEVELS: [&str; 4] = ["none", "note", "warning", "error"];

#[track_caller]
fn has(value: &Value, (required, allowed): Part) {
    let fields = value.as_object().unwrap();
    for name in required {
        assert!(fields.contains_key(*name), "{name} is missing: {value:#}");
    }
    for (name, value) in fields {
        assert!(required.contains(&name.as_str()) || allowed.contains(&name.as_str()), "{name} is not known");
        assert!(!value.is_null(), "{name} is null");
    }
}

fn items(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap()
}

#[track_caller]
fn validate(log: &Value) {
    has(log, LOG);
    assert_eq!(log["version"], "2.1.0");
    for run in items(&log["runs"]) {
        has(run, RUN);
        has(&run["tool"], TOOL);
        has(&run["tool"]["driver"], DRIVER);
        let rules = items(&run["tool"]["driver"]["rules"]);
        rules.iter().for_each(validate_rule);
        for result in items(&run["results"]) {
            validate_result(result, rules);
        }
    }
}

fn validate_rule(rule: &Value) {
    has(rule, RULE);
    for field in ["shortDescription", "fullDescription", "help"] {
        has(&rule[field], MULTIFORMAT);
        assert!(!rule[field]["text"].as_str().unwrap().is_empty(), "{rule:#}");
    }
    has(&rule["defaultConfiguration"], CONFIGURATION);
    assert!(LEVELS.contains(&rule["defaultConfiguration"]["level"].as_str().unwrap()));
    assert!(rule["helpUri"].as_str().unwrap().starts_with("https://"));
}

fn validate_result(result: &Value, rules: &[Value]) {
    has(result, RESULT);
    has(&result["message"], MESSAGE);
    assert!(LEVELS.contains(&result["level"].as_str().unwrap()));
    let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
    assert_eq!(rules[index]["id"], result["ruleId"]);
    for location in items(&result["locations"]) {
        has(location, LOCATION);
        for logical in items(&location["logicalLocations"]) {
            has(logical, LOGICAL);
        }
        if let Some(physical) = location.get("physicalLocation") {
            has(physical, PHYSICAL);
            has(&physical["artifactLocation"], ARTIFACT);
            if let Some(region) = physical.get("region") {
                has(region, REGION);
                assert!(region["startLine"].as_u64().unwrap() >= 1);
            }
        }
    }
    assert!(result["partialFingerprints"].as_object().unwrap().values().all(Value::is_string));
}

fn finding(code: Code, subject: Subject) -> Finding {
    Finding { code, severity: code.severity(), subject, message: "a fault".to_owned() }
}

#[test]
fn a_log_has_what_the_schema_requires_for_every_code() {
    let findings: Vec<Finding> =
        Code::ALL.iter().map(|code| finding(*code, Subject::new("Service", "web/frontend"))).collect();
    let log = log(&Cluster::default(), &findings);
    validate(&log);
    assert_eq!(items(&log["runs"][0]["results"]).len(), Code::ALL.len());
    assert!(items(&log["runs"][0]["results"])[0]["locations"][0].get("physicalLocation").is_none());
    validate(&super::log(&Cluster::default(), &[finding(Code::AddressLost, Subject::cluster())]));
    validate(&super::log(&Cluster::default(), &[]));
}

const TWO: &str = "\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Service
  metadata:
    labels:
      name: not-this
    name: frontend
    namespace: web
  spec: {type: NodePort}
- addressType: IPv4
  apiVersion: discovery.k8s.io/v1
  kind: EndpointSlice
  metadata:
    name: frontend-1
    namespace: web
";

#[test]
fn an_object_of_a_dump_has_its_file_and_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("core of web.yaml");
    std::fs::write(&file, TWO).unwrap();
    let (cluster, _) = dump::read(directory.path()).unwrap();
    let log = log(&cluster, &[finding(Code::NotPreserved, Subject::new("Service", "web/frontend"))]);
    validate(&log);
    let physical = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(physical["region"]["startLine"], 4);
    let uri = physical["artifactLocation"]["uri"].as_str().unwrap();
    assert!(uri.starts_with("file:///") && uri.ends_with("/core%20of%20web.yaml"), "{uri}");
}

#[test]
fn lines_are_found_in_each_form_that_kubectl_writes() {
    let json = serde_json::to_string_pretty(&serde_json::json!({
        "kind": "Service", "metadata": {"name": "frontend", "namespace": "web"},
    }));
    // kubectl indents by four.
    let json = json.unwrap().replace("  ", "    ");
    let list = "{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n        {\n            \"kind\": \"Service\",\n            \
                \"metadata\": {\n                \"name\": \"frontend\",\n                \"namespace\": \"web\"\n            }\n        }\n    ]\n}\n";
    let single =
        "# a comment\napiVersion: v1\nkind: Service\nmetadata:\n  name: frontend\n  namespace: web\n";
    let second = format!("kind: Node\nmetadata:\n  name: a\n---\n{single}");
    for (text, line) in [(TWO, 4), (&json, 1), (list, 4), (single, 2), (&second, 4)] {
        let found = Lines::of(text).find("Service", &Key::new("web", "frontend"));
        assert_eq!(found, Some(line), "{text}");
    }
    assert_eq!(Lines::of(TWO).find("Service", &Key::new("web", "absent")), None);
    assert_eq!(Lines::of("{}").find("Service", &Key::new("web", "frontend")), None);
}
