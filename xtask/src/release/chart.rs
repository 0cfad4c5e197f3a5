//! The Helm chart as a package: the files of `manifests/chart`, with the registry of the release,
//! links that work outside the repository, and annotations for Artifact Hub.

use std::collections::BTreeMap;
use std::io;
use std::string::FromUtf8Error;

use serde::Serialize;
use serde_yaml::{Mapping, Value};
use thiserror::Error;

use super::archive::{Entry, tar_gz};
use super::changelog::Change;
use super::images::Image;
use super::{Home, Release};

mod annotations;
#[cfg(test)]
mod tests;

/// The directory of the chart in the repository.
pub(super) const DIRECTORY: &str = "manifests/chart";
pub(super) const NAME: &str = "ingress-source-preserve";

/// Why the chart could not be packed.
#[derive(Debug, Error)]
pub(crate) enum ChartError {
    #[error(
        "{DIRECTORY}/Chart.yaml has {field} {found:?}, but Cargo.toml has version {version:?}; make them equal"
    )]
    Version { field: &'static str, found: String, version: String },
    #[error("{DIRECTORY} has no {0}")]
    Missing(&'static str),
    #[error("{path} is not valid YAML")]
    Malformed { path: String, source: serde_yaml::Error },
    #[error("{path} is not text")]
    NotText { path: String, source: FromUtf8Error },
    #[error("cannot pack the chart")]
    Pack(#[from] io::Error),
}

/// The inputs of the package.
pub(super) struct Inputs<'a> {
    pub(super) release: &'a Release,
    /// The files of the chart, by their path in it.
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// The CRDs, by path.
    pub(super) definitions: BTreeMap<String, Vec<u8>>,
    pub(super) images: &'a [Image],
    pub(super) changes: &'a [Change],
}

/// The name of the package.
pub(super) fn file_name(version: &str) -> String {
    format!("{NAME}-{version}.tgz")
}

/// Packs the chart.
pub(super) fn package(inputs: Inputs<'_>) -> Result<Vec<u8>, ChartError> {
    let Release { version, registry, home, source } = inputs.release;
    let annotations = annotations::annotations(&inputs)?;
    let mut files = inputs.files;
    let chart = text("Chart.yaml", files.remove("Chart.yaml").ok_or(ChartError::Missing("Chart.yaml"))?)?;
    files.insert("Chart.yaml".to_owned(), describe(&chart, version, home, annotations)?.into_bytes());
    for name in ["values.yaml", "README.md"] {
        let content = files.remove(name).ok_or(ChartError::Missing(name))?;
        let mut content = registry.replace_in(&text(name, content)?);
        if name == "README.md" {
            content = absolute_links(&content, &|path| home.source(version, path));
        }
        files.insert(name.to_owned(), content.into_bytes());
    }
    let entries =
        files.into_iter().map(|(path, content)| (format!("{NAME}/{path}"), Entry::file(content))).collect();
    Ok(tar_gz(&entries, source.seconds)?)
}

fn text(path: &str, content: Vec<u8>) -> Result<String, ChartError> {
    String::from_utf8(content).map_err(|source| ChartError::NotText { path: path.to_owned(), source })
}

fn parse(path: &str, content: &[u8]) -> Result<Value, ChartError> {
    serde_yaml::from_slice(content).map_err(|source| ChartError::Malformed { path: path.to_owned(), source })
}

/// `Chart.yaml` with the project's address and annotations. Its versions must be the release's.
fn describe(chart: &str, version: &str, home: &Home, annotations: Mapping) -> Result<String, ChartError> {
    let mut chart = parse("Chart.yaml", chart.as_bytes())?;
    for field in ["version", "appVersion"] {
        let found = chart[field].as_str().unwrap_or_default();
        if found != version {
            let (found, version) = (found.to_owned(), version.to_owned());
            return Err(ChartError::Version { field, found, version });
        }
    }
    chart["home"] = home.as_str().into();
    chart["sources"] = vec![home.as_str()].into();
    chart["annotations"] = annotations.into();
    yaml("Chart.yaml", &chart)
}

fn yaml(path: &str, value: &impl Serialize) -> Result<String, ChartError> {
    serde_yaml::to_string(value).map_err(|source| ChartError::Malformed { path: path.to_owned(), source })
}

/// Makes relative links of a page of the chart absolute.
fn absolute_links(page: &str, url: &dyn Fn(&str) -> String) -> String {
    let mut pieces = page.split("](");
    let mut linked = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        linked.push_str("](");
        match piece.split_once(')') {
            Some((target, rest)) if !target.contains("://") && !target.starts_with('#') => {
                linked.push_str(&url(&from_root(target)));
                linked.push(')');
                linked.push_str(rest);
            }
            _ => linked.push_str(piece),
        }
    }
    linked
}

/// A path relative to the chart as a path of the repository.
fn from_root(target: &str) -> String {
    let mut parts: Vec<&str> = DIRECTORY.split('/').collect();
    for part in target.split('/') {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}
