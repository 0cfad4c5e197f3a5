//! `cargo xtask push`: copies the images of a release to their registry with skopeo. The archive
//! has their names, so there is nothing to set.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use thiserror::Error;

use super::images::{self, Image, ImagesError};
use super::{IMAGES, Registry};
use crate::process::{self, ProcessError};

/// Why images were not pushed.
#[derive(Debug, Error)]
pub(crate) enum PushError {
    #[error("cannot read {}; run `cargo xtask release --registry …` first", path.display())]
    NoRelease { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Images(#[from] ImagesError),
    #[error(
        "the images are called {0}, which is no registry; run `cargo xtask release --registry …` with the one to push to"
    )]
    NoRegistry(String),
    #[error("skopeo is missing: install your distribution's package, or copy {} with another tool", .0.display())]
    NoSkopeo(PathBuf),
    #[error(transparent)]
    Skopeo(#[from] ProcessError),
}

/// Pushes all images of the release in a directory. skopeo gets the additional arguments.
pub(crate) fn run(directory: &Path, arguments: &[OsString]) -> Result<(), PushError> {
    let archive = directory.join(IMAGES);
    let file =
        File::open(&archive).map_err(|source| PushError::NoRelease { path: archive.clone(), source })?;
    let images = images::read(io::BufReader::new(file))?;
    if let Some(image) = images.iter().find(|image| image.reference.starts_with(Registry::IN_MANIFESTS)) {
        return Err(PushError::NoRegistry(image.reference.clone()));
    }
    if !process::succeeds(Command::new("skopeo").arg("--version")) {
        return Err(PushError::NoSkopeo(archive));
    }
    for image in &images {
        process::run(Command::new("skopeo").args(copy(&archive, image, arguments)))?;
    }
    Ok(())
}

/// The arguments that copy an image unchanged, with all its platforms.
fn copy(archive: &Path, image: &Image, arguments: &[OsString]) -> Vec<OsString> {
    let reference = &image.reference;
    let mut from = OsString::from("oci-archive:");
    from.push(archive);
    from.push(format!(":{reference}"));
    let mut all: Vec<OsString> = ["copy", "--all", "--preserve-digests"].map(OsString::from).into();
    all.extend(arguments.iter().cloned());
    all.extend([from, format!("docker://{reference}").into()]);
    all
}

#[cfg(test)]
mod tests {
    use super::super::tests::image;
    use super::*;

    #[test]
    fn an_image_goes_where_its_name_says() {
        let insecure = OsString::from("--dest-tls-verify=false");
        assert_eq!(
            copy(Path::new("dist/images.tar"), &image("r.example:5000/isp", "operator"), &[insecure]),
            [
                "copy",
                "--all",
                "--preserve-digests",
                "--dest-tls-verify=false",
                "oci-archive:dist/images.tar:r.example:5000/isp/operator:0.1.0",
                "docker://r.example:5000/isp/operator:0.1.0",
            ]
        );
    }

    #[test]
    fn a_release_that_is_not_there_is_named() {
        let error = run(Path::new("/nowhere"), &[]).unwrap_err().to_string();
        assert_eq!(error, "cannot read /nowhere/images.tar; run `cargo xtask release --registry …` first");
    }
}
