//! What helm and kustomize make of the sources, without a cluster.

use std::path::Path;
use std::process::Command;

use isp_lab::provision::{self, KubernetesVersion};
use serde::Deserialize;
use serde_json::Value;

use crate::helm::{chart, helm, path, printed, say};

/// Where the project is installed.
pub(crate) const SYSTEM: &str = "sourcepreserve-system";
/// The name of the release in tests.
pub(crate) const RELEASE: &str = "sourcepreserve";

/// Where no cluster is asked.
pub(crate) fn nowhere() -> &'static Path {
    Path::new("/dev/null")
}

/// The chart as text, with some values set, or why it is refused.
pub(crate) fn render(values: &[&str]) -> Result<String, String> {
    let chart = chart();
    let mut arguments = vec!["template", RELEASE, &chart, "--namespace", SYSTEM];
    arguments.extend(values.iter().flat_map(|value| ["--set-json", value]));
    helm(nowhere(), &arguments)
}

/// What kustomize makes of an overlay, as text.
pub(crate) fn kustomized(overlay: &str) -> String {
    let kubectl = provision::program_of(KubernetesVersion::default(), "kubectl", say).unwrap();
    let output =
        Command::new(kubectl).arg("kustomize").arg(path("manifests/overlays").join(overlay)).output();
    printed(&output.unwrap()).unwrap()
}

/// The objects of a text.
pub(crate) fn objects(yaml: &str) -> Vec<Value> {
    let documents = serde_yaml::Deserializer::from_str(yaml);
    let objects = documents.map(|document| Value::deserialize(document).unwrap());
    objects.filter(|object| !object.is_null()).collect()
}

/// The one object of a kind and a name.
pub(crate) fn object(objects: &[Value], kind: &str, name: &str) -> Value {
    let mut found =
        objects.iter().filter(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    let object = found.next().unwrap_or_else(|| panic!("there is no {kind} {name}"));
    assert!(found.next().is_none(), "{kind} {name} is there twice");
    object.clone()
}
