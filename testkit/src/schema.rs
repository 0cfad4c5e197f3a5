//! Compares JSON with the schemas of `docs/schemas`.
//!
//! It knows the keywords that our generator writes, and fails on others, so that nothing passes
//! unchecked. It is stricter than the schemas: a field that no schema mentions is a problem,
//! because every field that the plugin prints is documented.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::repository;

#[cfg(test)]
mod tests;

/// Keywords without an effect on what is valid.
const NOTES: [&str; 6] = ["$schema", "$defs", "title", "description", "default", "format"];

/// Fails if the output of a command is not as its schema says.
pub fn assert_output(command: &str, output: &Value) {
    let path = repository::file(&format!("docs/schemas/{command}.json"));
    let text = std::fs::read_to_string(&path).unwrap();
    let problems = problems(&serde_json::from_str(&text).unwrap(), output);
    assert!(problems.is_empty(), "{}: {problems:#?}\n{output:#}", path.display());
}

/// Everything in the value that is not as the schema says.
pub fn problems(schema: &Value, value: &Value) -> Vec<String> {
    let checker = Checker { root: schema };
    match checker.check(schema, value, "") {
        Ok(known) => undocumented(value, &known, ""),
        Err(problems) => problems,
    }
}

struct Checker<'a> {
    root: &'a Value,
}

/// The names of the fields that schemas mention, or problems.
type Checked = Result<BTreeSet<String>, Vec<String>>;

impl Checker<'_> {
    fn check(&self, schema: &Value, value: &Value, place: &str) -> Checked {
        let none = Map::new();
        let keywords = schema.as_object().unwrap_or(&none);
        let (mut known, mut problems) = (BTreeSet::new(), Vec::new());
        for (keyword, argument) in keywords {
            match self.keyword(keyword, argument, value, place) {
                Ok(names) => known.extend(names),
                Err(found) => problems.extend(found),
            }
        }
        if problems.is_empty() { Ok(known) } else { Err(problems) }
    }

    fn keyword(&self, keyword: &str, argument: &Value, value: &Value, place: &str) -> Checked {
        let list = || argument.as_array().cloned().unwrap_or_default();
        let fine = |holds: bool| {
            let problem = || vec![format!("{place}: {value} is not as {keyword} {argument}")];
            if holds { Ok(BTreeSet::new()) } else { Err(problem()) }
        };
        let length = || value.as_array().map_or(0, |items| items.len() as u64);
        match keyword {
            "$ref" => {
                let pointer = argument.as_str().and_then(|text| text.strip_prefix('#')).unwrap();
                self.check(self.root.pointer(pointer).unwrap(), value, place)
            }
            "type" => fine(list().iter().chain([argument]).any(|name| is_of(value, name))),
            "const" => fine(value == argument),
            "enum" => fine(list().contains(value)),
            "minimum" => fine(value.as_f64() >= argument.as_f64()),
            "maximum" => fine(value.as_f64() <= argument.as_f64()),
            "minItems" => fine(length() >= argument.as_u64().unwrap()),
            "maxItems" => fine(length() <= argument.as_u64().unwrap()),
            "required" => {
                fine(list().iter().all(|name| name.as_str().is_some_and(|name| value.get(name).is_some())))
            }
            "uniqueItems" => fine(are_different(value)),
            // What no schema mentions is a problem anyway.
            "additionalProperties" if *argument == json!(false) => Ok(BTreeSet::new()),
            "additionalProperties" if *argument == json!(true) => Ok(names(value).cloned().collect()),
            "properties" => self.properties(argument, value, place),
            "items" => {
                let items = value.as_array().into_iter().flatten();
                self.each(items.map(|item| (argument, item)), place)
            }
            "prefixItems" => self.each(list().iter().zip(value.as_array().into_iter().flatten()), place),
            "oneOf" | "anyOf" => self.alternatives(keyword, &list(), value, place),
            note if NOTES.contains(&note) => Ok(BTreeSet::new()),
            other => Err(vec![format!("{place}: the keyword {other} is not known here")]),
        }
    }

    fn properties(&self, schemas: &Value, value: &Value, place: &str) -> Checked {
        let mut problems = Vec::new();
        for (name, schema) in schemas.as_object().into_iter().flatten() {
            let Some(field) = value.get(name) else { continue };
            problems.extend(self.whole(schema, field, &format!("{place}.{name}")));
        }
        let names = schemas.as_object().into_iter().flatten().map(|(name, _)| name.clone());
        if problems.is_empty() { Ok(names.collect()) } else { Err(problems) }
    }

    fn each<'v>(&self, pairs: impl Iterator<Item = (&'v Value, &'v Value)>, place: &str) -> Checked {
        let problems: Vec<String> = pairs
            .enumerate()
            .flat_map(|(number, (schema, item))| self.whole(schema, item, &format!("{place}[{number}]")))
            .collect();
        if problems.is_empty() { Ok(BTreeSet::new()) } else { Err(problems) }
    }

    /// The problems of a value that this schema describes alone.
    fn whole(&self, schema: &Value, value: &Value, place: &str) -> Vec<String> {
        match self.check(schema, value, place) {
            Ok(known) => undocumented(value, &known, place),
            Err(problems) => problems,
        }
    }

    fn alternatives(&self, keyword: &str, schemas: &[Value], value: &Value, place: &str) -> Checked {
        let mut fitting: Vec<BTreeSet<String>> =
            schemas.iter().filter_map(|schema| self.check(schema, value, place).ok()).collect();
        match (fitting.len(), keyword) {
            (1, _) => Ok(fitting.remove(0)),
            (2.., "anyOf") => Ok(fitting.into_iter().flatten().collect()),
            (number, _) => Err(vec![format!("{place}: {value} fits {number} schemas of {keyword}")]),
        }
    }
}

fn is_of(value: &Value, name: &Value) -> bool {
    match name.as_str() {
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some("null") => *value == json!(null),
        _ => false,
    }
}

fn are_different(value: &Value) -> bool {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().enumerate().all(|(place, item)| !items[..place].contains(item))
}

fn names(value: &Value) -> impl Iterator<Item = &String> {
    value.as_object().into_iter().flatten().map(|(name, _)| name)
}

fn undocumented(value: &Value, known: &BTreeSet<String>, place: &str) -> Vec<String> {
    names(value)
        .filter(|name| !known.contains(*name))
        .map(|name| format!("{place}.{name}: no schema mentions it"))
        .collect()
}
