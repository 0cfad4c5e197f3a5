//! The differences between two JSON values. Pure.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

/// A field in which two values differ. A side without the field is `None`.
#[derive(Debug, PartialEq)]
pub struct Difference {
    /// The field's path.
    pub place: String,
    /// The value on the first side.
    pub before: Option<Value>,
    /// The value on the second side.
    pub after: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text =
            |side: &Option<Value>| side.as_ref().map_or_else(|| "nothing".to_owned(), Value::to_string);
        write!(f, "{}: {} became {}", self.place, text(&self.before), text(&self.after))
    }
}

/// The fields in which two values differ, below `place`. Numbers are equal with and without a zero
/// fraction.
pub fn between(place: &str, before: &Value, after: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    collect(place, Some(before), Some(after), &mut found);
    found
}

fn collect(place: &str, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<Difference>) {
    match (before, after) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            for key in one.keys().chain(other.keys()).collect::<BTreeSet<_>>() {
                let of = |object: &'_ Map<String, Value>| object.get(key).cloned();
                collect(&format!("{place}.{key}"), of(one).as_ref(), of(other).as_ref(), found);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) if one.len() == other.len() => {
            for (index, (before, after)) in one.iter().zip(other).enumerate() {
                collect(&format!("{place}[{index}]"), Some(before), Some(after), found);
            }
        }
        (Some(Value::Number(one)), Some(Value::Number(other))) if one.as_f64() == other.as_f64() => {}
        _ if before == after => {}
        _ => {
            found.push(Difference {
                place: place.to_owned(),
                before: before.cloned(),
                after: after.cloned(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_difference_names_the_field_and_both_values() {
        let (before, after) = (
            json!({"a": [1, {"b": "x"}], "c": 1, "e": [1]}),
            json!({"a": [1.0, {"b": "y"}], "d": null, "e": []}),
        );
        let found: Vec<String> = between("it", &before, &after).iter().map(ToString::to_string).collect();
        let expected = [
            r#"it.a[1].b: "x" became "y""#,
            "it.c: 1 became nothing",
            "it.d: nothing became null",
            "it.e: [1] became []",
        ];
        assert_eq!(found, expected);
        assert_eq!(between("it", &before, &before), []);
    }
}
