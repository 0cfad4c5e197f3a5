//! Schemas of selectors.
//!
//! Kubernetes' own schema of a `LabelSelector` is open: any operator, any value. The ones here accept only what the API server
//! accepts where it uses selectors itself, so that a mistake is found when the object is applied and not when a selector
//! silently matches nothing.

use kube::core::Rule;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::json;

use crate::rules;

/// Accepts also an empty selector, which selects everything.
pub(crate) fn any(_: &mut SchemaGenerator) -> Schema {
    selector()
}

/// Accepts only a selector that says something, where an empty one would take everything by accident.
pub(crate) fn non_empty(_: &mut SchemaGenerator) -> Schema {
    let rule = Rule::new(
        "(has(self.matchLabels) && self.matchLabels.size() > 0) \
         || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",
    )
    .message(
        "an empty selector would select everything: give at least one label in matchLabels or one requirement \
         in matchExpressions",
    );
    let mut schema = selector();
    schema.insert("x-kubernetes-validations".to_owned(), json!([rule]));
    schema
}

fn selector() -> Schema {
    json_schema!({
        "type": "object",
        // Two managers that each add a label to one selector would narrow it without either having asked for that.
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {
                "description": "Labels that must be there with exactly these values. All of them must match.",
                "type": "object",
                "maxProperties": 16,
                "additionalProperties": {
                    "type": "string",
                    "maxLength": 63,
                    "x-kubernetes-validations": [rules::label_value()],
                },
                "x-kubernetes-validations": [rules::rule(
                    "self.all(key, !format.qualifiedName().validate(key).hasValue())",
                    "'\"' + self.filter(key, format.qualifiedName().validate(key).hasValue())[0] \
                     + '\" is not a label key: use [prefix/]name, as in node-role.kubernetes.io/ingress'",
                )],
            },
            "matchExpressions": {
                "description": "Requirements on labels beyond equality. All of them must hold.",
                "type": "array",
                "maxItems": 16,
                "items": requirement(),
                "x-kubernetes-list-type": "atomic",
            },
        },
    })
}

fn requirement() -> Schema {
    let values_fit_operator = rules::rule(
        "self.operator in ['In', 'NotIn'] ? has(self.values) && self.values.size() > 0 \
         : !has(self.values) || self.values.size() == 0",
        "self.operator in ['In', 'NotIn'] \
         ? 'label \"' + self.key + '\": In and NotIn need at least one entry in values' \
         : 'label \"' + self.key + '\": Exists and DoesNotExist look only at the key: remove values, or use In or NotIn'",
    );
    json_schema!({
        "description": "A requirement on one label.",
        "type": "object",
        "required": ["key", "operator"],
        "properties": {
            "key": {
                "description": "The key of the label.",
                "type": "string",
                "maxLength": 317,
                "x-kubernetes-validations": [rules::label_key()],
            },
            "operator": {
                "description": "How the label is judged. `In` and `NotIn` compare its value with `values`, and `NotIn` also holds \
                                where there is no such label; `Exists` and `DoesNotExist` look only for the key.",
                "type": "string",
                "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
            },
            "values": {
                "description": "The values for `In` and `NotIn`; none for the other operators.",
                "type": "array",
                "maxItems": 64,
                // A pattern costs nothing; a CEL rule, evaluated for every value of every selector, would not fit the budget.
                "items": {
                    "type": "string",
                    "maxLength": 63,
                    "pattern": "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
                },
                "x-kubernetes-list-type": "atomic",
            },
        },
        "x-kubernetes-validations": [values_fit_operator],
    })
}
