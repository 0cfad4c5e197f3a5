//! The annotations of a chart that Artifact Hub reads. Those with lists have YAML texts.

use serde::Serialize;
use serde_yaml::{Mapping, Value};

use super::{Change, ChartError, Image, Inputs, parse, yaml};

#[derive(Serialize)]
struct ListedImage<'a> {
    name: &'a str,
    image: &'a str,
    platforms: Vec<&'a str>,
}

#[derive(Serialize)]
struct ListedChange<'a> {
    kind: &'a str,
    description: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedDefinition {
    kind: String,
    version: String,
    name: String,
    display_name: String,
    description: String,
}

/// The annotations that Artifact Hub reads. The values of lists are YAML texts.
pub(super) fn annotations(inputs: &Inputs<'_>) -> Result<Mapping, ChartError> {
    let images: Vec<_> = inputs.images.iter().map(list_image).collect();
    let changes: Vec<_> = inputs.changes.iter().map(list_change).collect();
    let definitions = inputs
        .definitions
        .iter()
        .map(|(path, content)| Ok(list_definition(&parse(path, content)?)))
        .collect::<Result<Vec<_>, ChartError>>()?;
    let prerelease = inputs.release.version.contains('-').to_string();
    Ok([
        ("artifacthub.io/category", "networking".to_owned()),
        ("artifacthub.io/changes", yaml("changes", &changes)?),
        ("artifacthub.io/crds", yaml("crds", &definitions)?),
        ("artifacthub.io/images", yaml("images", &images)?),
        ("artifacthub.io/license", env!("CARGO_PKG_LICENSE").to_owned()),
        ("artifacthub.io/operator", "true".to_owned()),
        ("artifacthub.io/operatorCapabilities", "Seamless Upgrades".to_owned()),
        ("artifacthub.io/prerelease", prerelease),
    ]
    .into_iter()
    .map(|(key, value)| (key.into(), value.into()))
    .collect())
}

fn list_image(image: &Image) -> ListedImage<'_> {
    let platforms = image.variants.iter().map(|variant| variant.platform.as_str()).collect();
    ListedImage { name: image.program(), image: &image.reference, platforms }
}

fn list_change(Change { kind, description }: &Change) -> ListedChange<'_> {
    ListedChange { kind, description }
}

fn list_definition(definition: &Value) -> ListedDefinition {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let version = &definition["spec"]["versions"][0];
    let kind = text(&definition["spec"]["names"]["kind"]);
    ListedDefinition {
        version: text(&version["name"]),
        name: text(&definition["metadata"]["name"]),
        display_name: kind.clone(),
        description: text(&version["schema"]["openAPIV3Schema"]["description"]),
        kind,
    }
}
