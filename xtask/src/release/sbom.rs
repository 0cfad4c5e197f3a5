//! SBOMs in the format of [CycloneDX](https://cyclonedx.org), as JSON: of a program the crates and
//! the libraries in it, of manifests the images that they name.

use serde::Serialize;

use super::Release;
use super::archive::sha256;
use super::crates::{Crate, Linked};
use super::images::Image;

#[cfg(test)]
mod tests;

/// An SBOM. <https://cyclonedx.org/docs/1.6/json/> defines the fields.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Bom {
    #[serde(rename = "$schema")]
    schema: &'static str,
    #[serde(rename = "bomFormat")]
    format: &'static str,
    spec_version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    serial_number: Option<String>,
    version: u32,
    metadata: Metadata,
    components: Vec<Component>,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Serialize)]
struct Metadata {
    timestamp: String,
    component: Component,
}

/// A thing that consists of other things, or is part of one.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Component {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(rename = "bom-ref")]
    bom_ref: String,
    name: String,
    version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    purl: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    licenses: Vec<License>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hashes: Vec<Hash>,
}

#[derive(Debug, Clone, Serialize)]
struct License {
    expression: String,
}

#[derive(Debug, Clone, Serialize)]
struct Hash {
    alg: &'static str,
    content: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Dependency {
    #[serde(rename = "ref")]
    of: String,
    depends_on: Vec<String>,
}

impl Component {
    fn new(kind: &'static str, name: &str, version: &str) -> Self {
        Self {
            kind,
            bom_ref: format!("{name}@{version}"),
            name: name.to_owned(),
            version: version.to_owned(),
            purl: None,
            licenses: Vec::new(),
            hashes: Vec::new(),
        }
    }

    /// A file of the release.
    pub(super) fn file(release: &Release, name: &str, content: &[u8]) -> Self {
        let hash = Hash { alg: "SHA-256", content: sha256(content) };
        Self {
            hashes: vec![hash],
            licenses: vec![License { expression: env!("CARGO_PKG_LICENSE").to_owned() }],
            ..Self::new("file", name, release.version)
        }
    }

    /// An image of the release.
    pub(super) fn image(release: &Release, image: &Image) -> Self {
        let (name, registry) = (image.program(), &release.registry);
        let (digest, version) = (image.digest.replace(':', "%3A"), release.version);
        Self {
            bom_ref: image.reference.clone(),
            purl: Some(format!("pkg:oci/{name}@{digest}?repository_url={registry}/{name}&tag={version}")),
            licenses: vec![License { expression: env!("CARGO_PKG_LICENSE").to_owned() }],
            ..Self::new("container", name, version)
        }
    }

    /// A library that is linked into a program and is no crate.
    pub(super) fn library(name: &str, version: &str, license: &str) -> Self {
        let licenses = vec![License { expression: license.to_owned() }];
        Self { licenses, ..Self::new("library", name, version) }
    }

    fn of_crate(one: &Crate) -> Self {
        let Crate { name, version, license, checksum } = one;
        Self {
            // Crates of the workspace are in no registry.
            purl: checksum.as_ref().map(|_| format!("pkg:cargo/{name}@{version}")),
            licenses: license.iter().map(|license| License { expression: license.clone() }).collect(),
            hashes: checksum.iter().map(|sum| Hash { alg: "SHA-256", content: sum.clone() }).collect(),
            ..Self::new("library", name, version)
        }
    }
}

/// The SBOM of a file or image with one program in it.
pub(super) fn of_program(
    release: &Release,
    subject: Component,
    linked: &Linked,
    libraries: Vec<Component>,
) -> Bom {
    let crates: Vec<Component> = linked.crates.iter().map(Component::of_crate).collect();
    let name = |place: &usize| crates.get(*place).map(|component| component.bom_ref.clone());
    let mut direct: Vec<String> = name(&linked.root).into_iter().collect();
    direct.extend(libraries.iter().map(|library| library.bom_ref.clone()));
    let mut dependencies = vec![Dependency { of: subject.bom_ref.clone(), depends_on: direct }];
    dependencies.extend(crates.iter().zip(&linked.depends_on).map(|(component, places)| Dependency {
        of: component.bom_ref.clone(),
        depends_on: places.iter().filter_map(name).collect(),
    }));
    finish(release, subject, crates.into_iter().chain(libraries).collect(), dependencies)
}

/// The SBOM of a file that names images.
pub(super) fn of_manifests(release: &Release, subject: Component, images: &[Image]) -> Bom {
    let components: Vec<Component> = images.iter().map(|image| Component::image(release, image)).collect();
    let depends_on = components.iter().map(|component| component.bom_ref.clone()).collect();
    let dependencies = vec![Dependency { of: subject.bom_ref.clone(), depends_on }];
    finish(release, subject, components, dependencies)
}

fn finish(
    release: &Release,
    component: Component,
    components: Vec<Component>,
    dependencies: Vec<Dependency>,
) -> Bom {
    Bom {
        schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
        format: "CycloneDX",
        spec_version: "1.6",
        serial_number: None,
        version: 1,
        metadata: Metadata { timestamp: release.source.time.clone(), component },
        components,
        dependencies,
    }
}

impl Bom {
    /// The content of the file. The serial number comes from the rest, so it is always the same.
    pub(super) fn render(mut self) -> Result<String, serde_json::Error> {
        self.serial_number = Some(serial_number(&serde_json::to_vec(&self)?));
        Ok(serde_json::to_string_pretty(&self)? + "\n")
    }
}

/// A UUID of version 8 from the digest of a content.
fn serial_number(content: &[u8]) -> String {
    let digest = sha256(content);
    let (time, rest) = digest.split_at(12);
    let (sequence, node) = (&rest[1..4], &rest[5..20]);
    format!("urn:uuid:{}-{}-8{sequence}-8{}-{}", &time[..8], &time[8..12], &node[..3], &node[3..15])
}
