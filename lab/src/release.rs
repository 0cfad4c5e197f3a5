//! The release images of the project's own programs. The Containerfile defines the same images for
//! container builds; a test compares both.

use std::path::{Path, PathBuf};

use crate::image::Image;
use crate::images::pack_image;
use crate::lab::LabError;

/// The registry of the release images. Each image has the name of its program.
pub const REGISTRY: &str = "ghcr.io/ingress-source-preserve";

/// An unprivileged user and group.
const USER: &str = "65532:65532";

/// The released programs and their descriptions.
const PROGRAMS: [(&str, &str); 3] = [
    ("operator", "Carries out what IngressSourcePreserves ask for, and puts it back"),
    ("webhook", "Answers API servers about pods and IngressSourcePreserves"),
    ("proxy-agent", "Shows a node's kube-proxy only what the node may see"),
];

/// Packs a program as its release image with this tag, for
/// [`Lab::load_image`](crate::Lab::load_image).
pub fn pack(program: &Path, tag: &str) -> Result<PathBuf, LabError> {
    pack_image(&image(program, tag)?)
}

/// Writes the image of a program with this version to a directory, as the OCI archive
/// `<name>-<version>.tar`.
pub fn write(program: &Path, directory: &Path) -> Result<PathBuf, LabError> {
    let version = env!("CARGO_PKG_VERSION");
    let image = image(program, version)?;
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let archive = directory.join(format!("{name}-{version}.tar"));
    image.write_archive(&archive)?;
    Ok(archive)
}

fn image(program: &Path, tag: &str) -> Result<Image, LabError> {
    let known = PROGRAMS.iter().find(|(name, _)| program.file_name().is_some_and(|file| file == *name));
    let (name, description) = known.ok_or_else(|| LabError::NotReleased(program.to_owned()))?;
    let place = format!("/usr/local/bin/{name}");
    Ok(Image::new(format!("{REGISTRY}/{name}:{tag}"))
        .program(program, &place)?
        .user(USER)
        .entrypoint([place])
        .label("org.opencontainers.image.title", *name)
        .label("org.opencontainers.image.description", *description)
        .label("org.opencontainers.image.version", env!("CARGO_PKG_VERSION"))
        .label("org.opencontainers.image.licenses", env!("CARGO_PKG_LICENSE")))
}

#[cfg(test)]
mod tests;
