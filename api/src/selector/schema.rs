//! Schemas of selectors.
//!
//! Kubernetes' own schema of a `LabelSelector` accepts any operator and value. These schemas accept
//! only what the API server accepts for its own selectors, so that a mistake is reported when the
//! object is applied instead of a selector that silently matches nothing.

use kube::core::Rule;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::json;

use crate::rules;

/// Also accepts an empty selector, which selects everything.
pub(crate) fn any(_: &mut SchemaGenerator) -> Schema {
    selector()
}

/// Rejects an empty selector where it would select everything by accident.
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
        // Atomic: otherwise two managers that each add a label would unintentionally narrow the
        // selector.
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {
                "description": "Labels that must have exactly these values. All of them must match.",
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
                "description": "Requirements on labels other than equality. All of them must match.",
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
         : 'label \"' + self.key + '\": Exists and DoesNotExist check only the key: remove values, or use In or NotIn'",
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
                "description": "The operator. `In` and `NotIn` compare the label's value with `values`, and `NotIn` also matches \
                                if the label does not exist; `Exists` and `DoesNotExist` check only the key.",
                "type": "string",
                "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
            },
            "values": {
                "description": "The values for `In` and `NotIn`; none for the other operators.",
                "type": "array",
                "maxItems": 64,
                // A pattern has no CEL cost; a rule per value of every selector would exceed the
                // cost budget.
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
