//! The files of a release, from its inputs. Pure.

use std::collections::BTreeMap;
use std::io;

use thiserror::Error;

use super::archive::{checksums, sha256};
use super::chart::{self, ChartError};
use super::crates::CratesError;
use super::images::Image;
use super::inputs::Inputs;
use super::install::{self, InstallError};
use super::krew::{self, PluginArchive};
use super::notes::{self, megabytes};
use super::provenance::{self, Tools};
use super::sbom::{self, Bom, Component};
use super::{CHECKSUMS, IMAGES, Release};
use crate::dist::Platform;

/// The most that an image may take on a node's disk.
const LARGEST_IMAGE: u64 = 15_000_000;

/// What is wrong with the inputs.
#[derive(Debug, Error)]
pub(crate) enum ComposeError {
    #[error("{image} has {} for {platform}, but images have at most {}", megabytes(*size), megabytes(LARGEST_IMAGE))]
    TooLarge { image: String, platform: String, size: u64 },
    #[error(transparent)]
    Install(#[from] InstallError),
    #[error(transparent)]
    Chart(#[from] ChartError),
    #[error(transparent)]
    Crates(#[from] CratesError),
    #[error("cannot pack the plugin")]
    Plugin(#[from] io::Error),
    #[error("cannot write the plugin's manifest")]
    Krew(#[from] serde_yaml::Error),
    #[error("cannot write an SBOM or the provenance")]
    Json(#[from] serde_json::Error),
    #[error("{0} still has the registry of the repository's manifests; write it there as the manifests do")]
    LeftOver(String),
}

/// Files by name.
type Files = BTreeMap<String, Vec<u8>>;

/// All files except the archive of the images, which the inputs describe.
pub(super) fn files(release: &Release, inputs: &Inputs) -> Result<Files, ComposeError> {
    check_sizes(&inputs.images)?;
    let mut files = manifests(release, inputs)?;
    files.extend(plugin(release, inputs)?);
    files.extend(image_sboms(release, inputs)?);
    let notes = notes::notes(release, &inputs.section, &inputs.images, &inputs.platforms);
    files.insert("NOTES.md".to_owned(), notes.into_bytes());
    check_registry(release, &files)?;

    let mut digests: BTreeMap<String, String> =
        files.iter().map(|(name, content)| (name.clone(), sha256(content))).collect();
    digests.insert(IMAGES.to_owned(), inputs.archive.clone());
    let c_libraries =
        inputs.c_libraries.iter().map(|(platform, version)| (platform.to_string(), version.clone()));
    let tools = Tools { rustc: inputs.rustc.clone(), c_libraries: c_libraries.collect() };
    let statement = provenance::statement(release, &inputs.platforms, tools, &digests);
    let statement = serde_json::to_string_pretty(&statement)? + "\n";
    digests.insert("provenance.json".to_owned(), sha256(statement.as_bytes()));
    files.insert("provenance.json".to_owned(), statement.into_bytes());
    files.insert(CHECKSUMS.to_owned(), checksums(&digests).into_bytes());
    Ok(files)
}

fn check_sizes(images: &[Image]) -> Result<(), ComposeError> {
    let variants = images.iter().flat_map(|image| image.variants.iter().map(move |variant| (image, variant)));
    match variants.max_by_key(|(_, variant)| variant.unpacked) {
        Some((image, variant)) if variant.unpacked > LARGEST_IMAGE => Err(ComposeError::TooLarge {
            image: image.reference.clone(),
            platform: variant.platform.clone(),
            size: variant.unpacked,
        }),
        _ => Ok(()),
    }
}

/// The overlays and the chart, with their SBOMs.
fn manifests(release: &Release, inputs: &Inputs) -> Result<Files, ComposeError> {
    let mut files = Files::new();
    for ((overlay, name), rendered) in install::OVERLAYS.iter().zip(&inputs.rendered) {
        let text = install::file(release, name, overlay, rendered);
        install::check(name, &text, &inputs.images)?;
        files.insert((*name).to_owned(), text.into_bytes());
    }
    let package = chart::package(chart::Inputs {
        release,
        files: inputs.chart.clone(),
        definitions: inputs.definitions.clone(),
        images: &inputs.images,
        changes: &inputs.section.changes,
    })?;
    files.insert(chart::file_name(release.version), package);
    let boms = files.iter().map(|(name, content)| {
        let subject = Component::file(release, name, content);
        Ok((sbom_name(name), render(sbom::of_manifests(release, subject, &inputs.images))?))
    });
    let boms = boms.collect::<Result<Files, ComposeError>>()?;
    files.extend(boms);
    Ok(files)
}

/// The plugin's archives and manifest, with an SBOM for each archive.
fn plugin(release: &Release, inputs: &Inputs) -> Result<Files, ComposeError> {
    let mut files = Files::new();
    let mut archives = Vec::new();
    for (platform, program) in &inputs.plugins {
        let file = krew::file_name(release.version, *platform);
        let packed = krew::pack(
            program.clone(),
            inputs.completion.clone(),
            inputs.license.clone(),
            release.source.seconds,
        )?;
        let subject = Component::file(release, &file, &packed);
        let bom = program_bom(release, inputs, *platform, krew::PROGRAM, subject, Vec::new())?;
        files.insert(sbom_name(&file), bom);
        archives.push(PluginArchive { platform: *platform, sha256: sha256(&packed), file: file.clone() });
        files.insert(file, packed);
    }
    files.insert(krew::MANIFEST.to_owned(), krew::manifest(release, &archives)?.into_bytes());
    Ok(files)
}

/// An SBOM for each image and platform.
fn image_sboms(release: &Release, inputs: &Inputs) -> Result<Files, ComposeError> {
    let mut files = Files::new();
    for image in &inputs.images {
        for platform in &inputs.platforms {
            let version = inputs.c_libraries.get(platform).map_or("", String::as_str);
            let c_library = Component::library("glibc", version, "LGPL-2.1-or-later");
            let subject = Component::image(release, image);
            let bom = program_bom(release, inputs, *platform, image.program(), subject, vec![c_library])?;
            let name = format!("{}-{}-linux-{}", image.program(), release.version, platform.architecture());
            files.insert(sbom_name(&name), bom);
        }
    }
    Ok(files)
}

fn program_bom(
    release: &Release,
    inputs: &Inputs,
    platform: Platform,
    program: &str,
    subject: Component,
    mut libraries: Vec<Component>,
) -> Result<Vec<u8>, ComposeError> {
    let graph = inputs.crates.get(&platform);
    let graph = graph.ok_or_else(|| CratesError::NoProgram(program.to_owned()))?;
    let version = inputs.rustc.split_whitespace().nth(1).unwrap_or(&inputs.rustc);
    libraries.push(Component::library("rust-std", version, "MIT OR Apache-2.0"));
    render(sbom::of_program(release, subject, &graph.linked(program)?, libraries))
}

fn render(bom: Bom) -> Result<Vec<u8>, ComposeError> {
    Ok(bom.render()?.into_bytes())
}

fn sbom_name(of: &str) -> String {
    format!("{of}.cdx.json")
}

/// Fails if a text names the registry that it should not. Archives are not searched.
fn check_registry(release: &Release, files: &Files) -> Result<(), ComposeError> {
    let left = files.iter().find(|(_, content)| {
        str::from_utf8(content).is_ok_and(|text| install::is_left_over(&release.registry, text))
    });
    left.map_or(Ok(()), |(name, _)| Err(ComposeError::LeftOver(name.clone())))
}

#[cfg(test)]
mod tests;
