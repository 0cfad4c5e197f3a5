//! The release images of the project's own programs. The Containerfile defines the same images for
//! container builds; a test compares both.

use std::path::{Path, PathBuf};

use crate::image::Image;
use crate::images::pack_image;
use crate::lab::LabError;

/// The registry in the manifests. It is no real one: images of this name are loaded on the nodes.
/// `cargo xtask release --registry` sets another one. Each image has the name of its program.
pub const REGISTRY: &str = "localhost/ingress-source-preserve";

/// An unprivileged user and group.
pub(crate) const NOBODY: &str = "65532:65532";
/// A container has the capabilities of its pod only as this user.
const ROOT: &str = "0:0";

/// The released programs, their users and their descriptions.
pub(crate) const PROGRAMS: [(&str, &str, &str); 5] = [
    ("operator", NOBODY, "Operator of IngressSourcePreserves"),
    ("webhook", NOBODY, "Admission webhook for pods and IngressSourcePreserves"),
    ("proxy-agent", NOBODY, "Node agent that filters the Services that kube-proxy sees"),
    ("pod-redirect", ROOT, "Init container that redirects a pod's traffic to its own proxy"),
    ("probe", NOBODY, "Target and clients of kubectl isp probe"),
];

/// Packs a program as its release image with this tag, for
/// [`Lab::load_image`](crate::Lab::load_image).
pub fn pack(program: &Path, tag: &str) -> Result<PathBuf, LabError> {
    pack_image(&image(program, REGISTRY, tag)?)
}

/// Writes the images of programs with this version to one OCI archive. A program that is given
/// for several architectures, one path after the other, becomes one image.
pub fn write(programs: &[PathBuf], registry: &str, archive: &Path) -> Result<(), LabError> {
    let version = env!("CARGO_PKG_VERSION");
    let image = |program: &PathBuf| Ok(image(program, registry, version)?.compressed());
    let images = programs.iter().map(image).collect::<Result<Vec<_>, LabError>>()?;
    Ok(Image::write_archive_of(&images, archive)?)
}

fn image(program: &Path, registry: &str, tag: &str) -> Result<Image, LabError> {
    let known = PROGRAMS.iter().find(|(name, ..)| program.file_name().is_some_and(|file| file == *name));
    let (name, user, description) = known.ok_or_else(|| LabError::NotReleased(program.to_owned()))?;
    let place = format!("/usr/local/bin/{name}");
    Ok(Image::new(format!("{registry}/{name}:{tag}"))
        .program(program, &place)?
        .architecture_of(program)?
        .user(*user)
        .entrypoint([place])
        .label("org.opencontainers.image.title", *name)
        .label("org.opencontainers.image.description", *description)
        .label("org.opencontainers.image.version", env!("CARGO_PKG_VERSION"))
        .label("org.opencontainers.image.licenses", env!("CARGO_PKG_LICENSE")))
}

#[cfg(test)]
mod tests;
