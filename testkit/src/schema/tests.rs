use serde_json::json;

use super::*;

fn schema() -> Value {
    json!({
        "title": "a title", "type": "object", "required": ["name", "ports"],
        "properties": {
            "name": {"$ref": "#/$defs/Name"},
            "ports": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 65535}},
            "pair": {
                "type": "array", "minItems": 2, "maxItems": 2, "prefixItems": [{"type": "string"}, {"type": "boolean"}],
            },
            "why": {"type": ["string", "null"]},
            "labels": {"type": "object", "additionalProperties": true},
            "nodes": {"type": "array", "uniqueItems": true},
        },
        "oneOf": [
            {"type": "object", "required": ["to"], "properties": {"to": {"const": "direct"}}},
            {"type": "object", "required": ["to"], "properties": {"to": {"const": "proxy"}, "port": {"type": "integer"}}},
        ],
        "$defs": {"Name": {"type": "string", "enum": ["web", "shop"]}},
    })
}

#[test]
fn a_value_as_its_schema_says_has_no_problems() {
    for value in [
        json!({"name": "web", "ports": [], "to": "direct"}),
        json!({"name": "web", "ports": [], "labels": {"any": {"thing": 1}}, "nodes": ["a", "b"], "to": "direct"}),
        json!({"name": "shop", "ports": [1, 2], "pair": ["a", true], "why": null, "to": "proxy", "port": 3}),
    ] {
        assert_eq!(problems(&schema(), &value), Vec::<String>::new(), "{value}");
    }
}

#[test]
fn each_fault_is_a_problem_at_its_place() {
    for (value, expected) in [
        (json!({"name": "web", "to": "direct"}), "required"),
        (json!({"name": "other", "ports": [], "to": "direct"}), ".name: \"other\" is not as enum"),
        (json!({"name": "web", "ports": [1, "x"], "to": "direct"}), ".ports[1]: \"x\" is not as"),
        (json!({"name": "web", "ports": [70000], "to": "direct"}), ".ports[0]: 70000 is not as maximum"),
        (
            json!({"name": "web", "ports": [], "pair": ["a"], "to": "direct"}),
            ".pair: [\"a\"] is not as minItems",
        ),
        (json!({"name": "web", "ports": [], "why": 1, "to": "direct"}), ".why: 1 is not as type"),
        (json!({"name": "web", "ports": [], "to": "nowhere"}), "fits 0 schemas of oneOf"),
        (json!({"name": "web", "ports": [], "to": "direct", "port": 3}), ".port: no schema mentions it"),
        (json!({"name": "web", "ports": [], "nodes": ["a", "a"], "to": "direct"}), "is not as uniqueItems"),
        (json!([]), "is not as type"),
    ] {
        let found = problems(&schema(), &value);
        assert!(found.iter().any(|problem| problem.contains(expected)), "{expected}: {found:?}");
    }
}

#[test]
fn a_keyword_that_is_not_checked_is_a_problem() {
    assert_eq!(problems(&json!({"pattern": "x"}), &json!("x")), [": the keyword pattern is not known here"]);
}
