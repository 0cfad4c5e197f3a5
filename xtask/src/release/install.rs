//! `install.yaml`, the objects of an overlay in one file, and the check that manifests name the
//! images of the release and no others.

use serde::Deserialize;
use serde_yaml::Value;
use thiserror::Error;

use super::images::Image;
use super::{Registry, Release};

#[cfg(test)]
mod tests;

/// The overlays that users install, and their files. The overlay `lab` is for the lab only.
pub(super) const OVERLAYS: [(&str, &str); 2] =
    [("default", "install.yaml"), ("cert-manager", "install-cert-manager.yaml")];

/// The image of the plugin's own pods, which no manifest names.
const OF_THE_PLUGIN: &str = "probe";

/// What is wrong in rendered manifests.
#[derive(Debug, Error)]
pub(crate) enum InstallError {
    #[error("kustomize's output for {file} is not valid YAML")]
    Malformed { file: String, source: serde_yaml::Error },
    #[error(
        "{file} names the image {image}, which is not part of the release; its images are {known}: set the tag in manifests/overlays, and the version in Cargo.toml and Chart.yaml, to the same value"
    )]
    Unknown { file: String, image: String, known: String },
    #[error("{file} names no image {image}; add it to manifests/overlays")]
    Missing { file: String, image: String },
}

/// The file of an overlay, from kustomize's output.
pub(super) fn file(release: &Release, name: &str, overlay: &str, rendered: &str) -> String {
    let Release { version, registry, .. } = release;
    format!(
        "# ingress-source-preserve {version}, from manifests/overlays/{overlay}. Its images are {registry}/….\n\
         # kubectl apply --server-side -f {name}\n{}",
        registry.replace_in(rendered)
    )
}

/// Checks that a file names the images of the release, all but the plugin's own, and no others.
pub(super) fn check(file: &str, text: &str, images: &[Image]) -> Result<(), InstallError> {
    let named = named(text).map_err(|source| InstallError::Malformed { file: file.to_owned(), source })?;
    if let Some(image) = named.iter().find(|name| images.iter().all(|image| image.reference != **name)) {
        let known = images.iter().map(|image| image.reference.as_str()).collect::<Vec<_>>().join(", ");
        return Err(InstallError::Unknown { file: file.to_owned(), image: image.clone(), known });
    }
    let is_missing = |image: &&Image| image.program() != OF_THE_PLUGIN && !named.contains(&image.reference);
    match images.iter().find(is_missing) {
        Some(Image { reference, .. }) => {
            Err(InstallError::Missing { file: file.to_owned(), image: reference.clone() })
        }
        None => Ok(()),
    }
}

/// The images in a text of YAML documents: of containers, and in variables such as `AGENT_IMAGE`.
pub(super) fn named(text: &str) -> Result<Vec<String>, serde_yaml::Error> {
    let mut found = Vec::new();
    for document in serde_yaml::Deserializer::from_str(text) {
        collect(&Value::deserialize(document)?, &mut found);
    }
    Ok(found)
}

fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Mapping(fields) => {
            let text = |key: &str| fields.get(key).and_then(Value::as_str);
            found.extend(text("image").map(str::to_owned));
            if text("name").is_some_and(|name| name.ends_with("_IMAGE")) {
                found.extend(text("value").map(str::to_owned));
            }
            fields.values().for_each(|value| collect(value, found));
        }
        Value::Sequence(values) => values.iter().for_each(|value| collect(value, found)),
        _ => {}
    }
}

/// Whether a text still has the registry of the repository's manifests although the release has
/// another one.
pub(super) fn is_left_over(registry: &Registry, text: &str) -> bool {
    registry.as_str() != Registry::IN_MANIFESTS && text.contains(Registry::IN_MANIFESTS)
}
