//! The objects of a file: YAML or JSON, one document or several. Errors name the place.

use std::io::Read;
use std::path::Path;

use isp_api::IngressSourcePreserve;
use kube::Resource;
use serde::Deserialize;
use serde_json::Value;

use crate::error::CommandError;

#[cfg(test)]
mod tests;

/// Reads the objects; `-` is standard input.
pub(crate) fn read(path: &Path) -> Result<Vec<IngressSourcePreserve>, CommandError> {
    let failed = |source| CommandError::File { path: path.to_owned(), source };
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(failed)?;
        return parse("standard input", &text);
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    parse(&path.display().to_string(), &text)
}

fn parse(file: &str, text: &str) -> Result<Vec<IngressSourcePreserve>, CommandError> {
    let error = |place: String, problem: String| CommandError::Document { place, problem };
    let mut objects: Vec<IngressSourcePreserve> = Vec::new();
    // Each document is parsed twice: only the typed pass knows lines and columns for its errors.
    let documents = serde_yaml::Deserializer::from_str(text).zip(serde_yaml::Deserializer::from_str(text));
    for (number, (first, second)) in documents.enumerate() {
        let place = format!("{file}, document {}", number + 1);
        let value = Value::deserialize(first).map_err(|problem| error(place.clone(), problem.to_string()))?;
        if value.is_null() {
            continue;
        }
        let name = check(&value).map_err(|problem| error(place.clone(), problem))?;
        let place = format!("{place} ({name})");
        let object = IngressSourcePreserve::deserialize(second)
            .map_err(|problem| error(place.clone(), problem.to_string()))?;
        if let Some(field) = unknown(&value["spec"], &serde_json::json!(object.spec), "spec") {
            return Err(error(
                place,
                format!("{field}: there is no such field; `kubectl explain isp.spec` lists them"),
            ));
        }
        if objects.iter().any(|before| before.metadata.name == object.metadata.name) {
            return Err(error(place, "the file already has an object of this name".to_owned()));
        }
        objects.push(object);
    }
    if objects.is_empty() {
        return Err(error(file.to_owned(), "there is no IngressSourcePreserve in it".to_owned()));
    }
    Ok(objects)
}

/// The name of a document that is an IngressSourcePreserve.
fn check(value: &Value) -> Result<String, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text(&value["apiVersion"]), text(&value["kind"]));
    let name = text(&value["metadata"]["name"]);
    let (wanted, of_kind) = (IngressSourcePreserve::api_version(&()), IngressSourcePreserve::kind(&()));
    if kind != of_kind || version != wanted {
        let what = match (kind.as_str(), name.as_str()) {
            ("", _) => "an object without a kind".to_owned(),
            (kind, "") => format!("a {kind} ({version})"),
            (kind, name) => format!("{kind} {name} ({version})"),
        };
        return Err(format!(
            "this is {what}; plan accepts only {of_kind} of {wanted}: remove it from the file"
        ));
    }
    if name.is_empty() { Err("metadata.name is missing".to_owned()) } else { Ok(name) }
}

/// The first field that the types do not know, which the API server would refuse.
fn unknown(given: &Value, understood: &Value, path: &str) -> Option<String> {
    match (given, understood) {
        (Value::Object(given), Value::Object(understood)) => given.iter().find_map(|(key, value)| {
            let path = format!("{path}.{key}");
            match understood.get(key) {
                Some(understood) => unknown(value, understood, &path),
                None if says_nothing(value) => None,
                None => Some(path),
            }
        }),
        (Value::Array(given), Value::Array(understood)) => {
            let mut pairs = given.iter().zip(understood).enumerate();
            pairs.find_map(|(place, (given, understood))| {
                unknown(given, understood, &format!("{path}[{place}]"))
            })
        }
        _ => None,
    }
}

/// Null and empty lists are left out when an object is serialized.
fn says_nothing(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}
