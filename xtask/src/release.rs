//! `cargo xtask release`: makes everything that a release consists of, in one directory. The same
//! commit, options and tools give the same bytes.
//!
//! `inputs` builds programs, runs tools and reads files. `compose` turns these inputs into the
//! files of the release, without I/O; the other modules make one kind of file each. This module
//! writes them.

mod archive;
pub(crate) mod before;
mod changelog;
mod chart;
mod compose;
mod crates;
mod images;
mod inputs;
mod install;
mod krew;
mod notes;
mod provenance;
pub(crate) mod push;
mod registry;
mod sbom;
mod source;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

pub(crate) use self::registry::{Home, Registry};

use self::archive::sha256;
use self::changelog::ChangelogError;
use self::compose::ComposeError;
use self::images::ImagesError;
use self::inputs::InputError;
use self::source::{Source, SourceError};
use crate::dist::Platform;
use crate::workspace::Workspace;

/// The archive of the images.
const IMAGES: &str = "images.tar";
/// The checksums of all other files.
const CHECKSUMS: &str = "SHA256SUMS";

/// What all files of a release have in common.
#[derive(Debug)]
struct Release {
    version: &'static str,
    registry: Registry,
    home: Home,
    source: Source,
}

/// Why there is no release.
#[derive(Debug, Error)]
pub(crate) enum ReleaseError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Changelog(#[from] ChangelogError),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Images(#[from] ImagesError),
    #[error(transparent)]
    Compose(#[from] ComposeError),
    #[error("{} has other files than a release; choose another directory with --out, or delete it", .0.display())]
    NotOurs(PathBuf),
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// Makes a release in a directory.
pub(crate) fn run(
    workspace: &Workspace,
    registry: Registry,
    home: Home,
    out: &Path,
) -> Result<(), ReleaseError> {
    let source = Source::read(&workspace.root)?;
    let release = Release { version: env!("CARGO_PKG_VERSION"), registry, home, source };
    let section = changelog::section(&inputs::text(&workspace.root.join("CHANGELOG.md"))?, release.version)?;
    prepare(out)?;

    let archive = out.join(IMAGES);
    let inputs = inputs::gather(workspace, &release, section, &archive)?;
    let files = compose::files(&release, &inputs)?;
    for (name, content) in &files {
        let path = out.join(name);
        fs::write(&path, content).map_err(|source| ReleaseError::Write { path, source })?;
    }
    report(out, &inputs, &files[CHECKSUMS]);
    Ok(())
}

/// Empties the directory of an earlier release. Leaves every other directory alone.
fn prepare(out: &Path) -> Result<(), ReleaseError> {
    let failed = |source| ReleaseError::Write { path: out.to_owned(), source };
    let is_empty = match fs::read_dir(out) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        entries => entries.map_err(failed)?.next().is_none(),
    };
    if !is_empty {
        let ours = out.join(CHECKSUMS).is_file() || out.join(IMAGES).is_file();
        if !ours {
            return Err(ReleaseError::NotOurs(out.to_owned()));
        }
        fs::remove_dir_all(out).map_err(failed)?;
    }
    fs::create_dir_all(out).map_err(failed)
}

/// Prints what was made, and what was not.
fn report(out: &Path, inputs: &inputs::Inputs, checksums: &[u8]) {
    for image in &inputs.images {
        for variant in &image.variants {
            let (pulled, unpacked) = (variant.compressed, variant.unpacked);
            let (pulled, unpacked) = (notes::megabytes(pulled), notes::megabytes(unpacked));
            println!("release: {} for {}: {pulled} to pull, {unpacked}", image.reference, variant.platform);
        }
    }
    for missing in Platform::ALL.iter().filter(|platform| !inputs.platforms.contains(platform)) {
        let tuple = missing.tuple();
        println!("release: nothing for {missing}; `rustup target add {tuple}` and a cross compiler add it");
    }
    println!("release: {}, checksums {}", out.display(), sha256(checksums));
}
