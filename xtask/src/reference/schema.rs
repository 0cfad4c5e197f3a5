//! The schema of a field, and its rows in the table.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_yaml::Value;

/// The subset of `OpenAPI` that the CRDs use.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Schema {
    #[serde(rename = "type")]
    kind: String,
    format: String,
    pub(super) description: String,
    default: Option<Value>,
    #[serde(rename = "enum")]
    choices: Vec<String>,
    required: Vec<String>,
    pub(super) properties: BTreeMap<String, Schema>,
    items: Option<Box<Schema>>,
    additional_properties: Option<Box<Schema>>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    min_items: Option<u64>,
    max_items: Option<u64>,
    max_length: Option<u64>,
    #[serde(rename = "x-kubernetes-int-or-string")]
    int_or_string: bool,
    #[serde(rename = "x-kubernetes-validations")]
    rules: Vec<Rule>,
}

/// A CEL rule. Rules with a `messageExpression` instead of a message are skipped: the description
/// says the same.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Rule {
    message: String,
}

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) path: String,
    pub(super) kind: String,
    pub(super) is_required: bool,
    pub(super) meaning: String,
}

impl Schema {
    /// The fields below this one, depth first, required fields before others.
    pub(super) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        self.add_rows("", &mut rows);
        rows
    }

    /// The first label selector below this field, if any.
    pub(super) fn find_selector(&self) -> Option<&Self> {
        let below = self.properties.values().chain(self.items.as_deref());
        below
            .into_iter()
            .find_map(|field| if field.is_selector() { Some(field) } else { field.find_selector() })
    }

    fn add_rows(&self, path: &str, rows: &mut Vec<Row>) {
        let is_required = |name: &str| self.required.iter().any(|required| required == name);
        let (first, then): (Vec<_>, Vec<_>) = self.properties.iter().partition(|(name, _)| is_required(name));
        for (name, field) in first.into_iter().chain(then) {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            rows.push(Row {
                kind: field.kind(),
                is_required: is_required(name),
                meaning: field.meaning(),
                path: path.clone(),
            });
            let (inner, path) = match &field.items {
                Some(items) => (items.as_ref(), format!("{path}[]")),
                None => (field, path),
            };
            if !inner.is_selector() && !inner.is_condition() {
                inner.add_rows(&path, rows);
            }
        }
    }

    /// The type, in words.
    fn kind(&self) -> String {
        if self.is_selector() {
            return "[selector](#label-selectors)".to_owned();
        }
        if self.is_condition() {
            return "Condition".to_owned();
        }
        if !self.choices.is_empty() {
            let choices: Vec<_> = self.choices.iter().map(|choice| format!("`{choice}`")).collect();
            return choices.join(" or ");
        }
        match (&self.items, &self.additional_properties) {
            (Some(items), _) => format!("list of {}", items.kind()),
            (_, Some(values)) => format!("map of {}", values.kind()),
            _ if self.int_or_string => "integer or percentage".to_owned(),
            _ if self.format == "date-time" => "time".to_owned(),
            _ => self.kind.clone(),
        }
    }

    /// The description, followed by the limits in short sentences.
    fn meaning(&self) -> String {
        let mut text = self.description.trim().to_owned();
        let mut say = |sentence: String| {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(&sentence);
        };
        match &self.default {
            None | Some(Value::Mapping(_)) => {}
            Some(default) => say(format!("Default: `{}`.", plain(default))),
        }
        match (self.minimum, self.maximum) {
            (Some(least), Some(most)) => say(format!("From {least} to {most}.")),
            // A minimum of 0 is omitted.
            (Some(least), None) if least > 0.0 => say(format!("At least {least}.")),
            (None, Some(most)) => say(format!("At most {most}.")),
            _ => {}
        }
        match (self.min_items, self.max_items) {
            (Some(least), Some(most)) => say(format!("{least} to {most} entries.")),
            (Some(least), None) => say(format!("At least {least} entries.")),
            (None, Some(most)) => say(format!("At most {most} entries.")),
            (None, None) => {}
        }
        if let (Some(most), false) = (self.max_length, self.int_or_string) {
            say(format!("At most {most} characters."));
        }
        for rule in self.rules.iter().filter(|rule| !rule.message.is_empty()) {
            say(format!("Refused: {}.", rule.message));
        }
        text
    }

    fn is_selector(&self) -> bool {
        self.properties.keys().eq(["matchExpressions", "matchLabels"])
    }

    /// Whether it is a standard Kubernetes condition.
    fn is_condition(&self) -> bool {
        self.properties.contains_key("lastTransitionTime") && self.properties.contains_key("reason")
    }
}

fn plain(value: &Value) -> String {
    serde_yaml::to_string(value).unwrap_or_default().trim().to_owned()
}
