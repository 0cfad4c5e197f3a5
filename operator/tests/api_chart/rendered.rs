//! The output of helm and kustomize, without a cluster.

use std::path::Path;
use std::process::Command;

use isp_lab::provision::{self, KubernetesVersion};
use isp_testkit::control_plane::SYSTEM;
use isp_testkit::repository;
use serde::Deserialize;
use serde_json::Value;

use crate::helm::{chart, helm, printed, say};

/// The name of the release in tests.
pub(crate) const RELEASE: &str = "sourcepreserve";

/// A kubeconfig without a cluster.
pub(crate) fn nowhere() -> &'static Path {
    Path::new("/dev/null")
}

/// The rendered chart with these values, or the error.
pub(crate) fn render(values: &[&str]) -> Result<String, String> {
    let chart = chart();
    let mut arguments = vec!["template", RELEASE, &chart, "--namespace", SYSTEM];
    arguments.extend(values.iter().flat_map(|value| ["--set-json", value]));
    helm(nowhere(), &arguments)
}

/// The output of kustomize for an overlay.
pub(crate) fn kustomized(overlay: &str) -> String {
    let kubectl = provision::program_of(KubernetesVersion::default(), "kubectl", say).unwrap();
    let output = Command::new(kubectl)
        .arg("kustomize")
        .arg(repository::file("manifests/overlays").join(overlay))
        .output();
    printed(&output.unwrap()).unwrap()
}

/// The objects in a YAML text.
pub(crate) fn objects(yaml: &str) -> Vec<Value> {
    let documents = serde_yaml::Deserializer::from_str(yaml);
    let objects = documents.map(|document| Value::deserialize(document).unwrap());
    objects.filter(|object| !object.is_null()).collect()
}

/// The only object of this kind and name.
pub(crate) fn object(objects: &[Value], kind: &str, name: &str) -> Value {
    let mut found =
        objects.iter().filter(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    let object = found.next().unwrap_or_else(|| panic!("there is no {kind} {name}"));
    assert!(found.next().is_none(), "{kind} {name} is there twice");
    object.clone()
}
