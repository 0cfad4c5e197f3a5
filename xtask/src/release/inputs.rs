//! Gathers what a release is made of: built programs, rendered overlays, files of the repository,
//! the crates of the programs, and the versions of the tools.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use thiserror::Error;

use super::archive::sha256;
use super::changelog::Section;
use super::crates::{CratesError, Graph};
use super::images::{self, Image, ImagesError};
use super::{Release, chart, install, krew};
use crate::dist::{self, Linking, Platform};
use crate::image::{self, Built, Program};
use crate::lab;
use crate::process::{self, ProcessError};
use crate::workspace::Workspace;

/// The inputs of all files.
pub(super) struct Inputs {
    pub(super) section: Section,
    pub(super) platforms: Vec<Platform>,
    pub(super) images: Vec<Image>,
    /// The SHA-256 of the archive of the images.
    pub(super) archive: String,
    /// The C library in the programs of the images, for each platform.
    pub(super) c_libraries: BTreeMap<Platform, String>,
    /// The output of `rustc --version`.
    pub(super) rustc: String,
    /// The plugin for each platform.
    pub(super) plugins: BTreeMap<Platform, Vec<u8>>,
    /// The crates for each platform.
    pub(super) crates: BTreeMap<Platform, Graph>,
    /// kustomize's output for each of `install::OVERLAYS`.
    pub(super) rendered: Vec<String>,
    /// By their path in the chart.
    pub(super) chart: BTreeMap<String, Vec<u8>>,
    /// The CRDs, by their path in the repository.
    pub(super) definitions: BTreeMap<String, Vec<u8>>,
    /// The executable that completes the plugin's arguments.
    pub(super) completion: Vec<u8>,
    pub(super) license: Vec<u8>,
}

/// Why an input is missing.
#[derive(Debug, Error)]
pub(crate) enum InputError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("cannot read {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Images(#[from] ImagesError),
    #[error(transparent)]
    Crates(#[from] CratesError),
    #[error("no program for {0} says which C library it contains; are they static, with glibc?")]
    NoCLibrary(Platform),
}

/// Builds the programs, writes the archive of the images and reads everything else.
pub(super) fn gather(
    workspace: &Workspace,
    release: &Release,
    section: Section,
    archive: &Path,
) -> Result<Inputs, InputError> {
    let root = &workspace.root;
    let platforms = dist::installed()?;
    let programs = image::build(workspace, &platforms, Program::all())?;
    let mut plugins = BTreeMap::new();
    for platform in &platforms {
        for path in dist::build(workspace, *platform, Linking::Dynamic, &[krew::PROGRAM.to_owned()])? {
            plugins.insert(*platform, read(&path)?);
        }
    }
    image::pack(workspace, &release.registry, &programs, archive)?;
    let packed = read(archive)?;
    let c_libraries = c_libraries(&platforms, &programs)?;
    let lock = text(&root.join("Cargo.lock"))?;
    let crates = platforms
        .iter()
        .map(|platform| Ok((*platform, Graph::read(&metadata(root, *platform)?, &lock)?)))
        .collect::<Result<_, InputError>>()?;
    let rustc = process::capture(Command::new("rustc").arg("--version"))?;
    Ok(Inputs {
        section,
        images: images::read(packed.as_slice())?,
        archive: sha256(&packed),
        c_libraries,
        rustc: String::from_utf8_lossy(&rustc).trim().to_owned(),
        plugins,
        crates,
        rendered: render(workspace)?,
        chart: tracked(root, chart::DIRECTORY)?,
        definitions: definitions(root)?,
        completion: read(&root.join("cli").join(krew::COMPLETION))?,
        license: read(&root.join("LICENSE"))?,
        platforms,
    })
}

fn read(path: &Path) -> Result<Vec<u8>, InputError> {
    fs::read(path).map_err(|source| InputError::File { path: path.to_owned(), source })
}

/// The text of a file.
pub(super) fn text(path: &Path) -> Result<String, InputError> {
    fs::read_to_string(path).map_err(|source| InputError::File { path: path.to_owned(), source })
}

/// The files of a directory that are in git, by their path in it.
fn tracked(root: &Path, directory: &str) -> Result<BTreeMap<String, Vec<u8>>, InputError> {
    let listed =
        process::capture(Command::new("git").current_dir(root).args(["ls-files", "-z", "--", directory]))?;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let inside = |path: &str| Some(path.strip_prefix(directory)?.trim_start_matches('/').to_owned());
    listed
        .split('\0')
        .filter_map(|path| Some((path, inside(path).filter(|inside| !inside.is_empty())?)))
        .map(|(path, inside)| Ok((inside, read(&root.join(path))?)))
        .collect()
}

/// The CRDs, without the kustomization beside them.
fn definitions(root: &Path) -> Result<BTreeMap<String, Vec<u8>>, InputError> {
    let mut files = tracked(root, "crds")?;
    files.retain(|path, _| Path::new(path).extension().is_some_and(|extension| extension == "yaml"));
    Ok(files)
}

/// kustomize's output for the overlays, by the lab's pinned kubectl: other versions may order or
/// format objects differently.
fn render(workspace: &Workspace) -> Result<Vec<String>, InputError> {
    let printed = process::capture(lab::command(workspace).args(["program", "kubectl"]))?;
    let kubectl = PathBuf::from(String::from_utf8_lossy(&printed).trim());
    let render = |(overlay, _): &(&str, &str)| {
        let directory = workspace.root.join("manifests/overlays").join(overlay);
        let rendered = process::capture(Command::new(&kubectl).arg("kustomize").arg(directory))?;
        Ok(String::from_utf8_lossy(&rendered).into_owned())
    };
    install::OVERLAYS.iter().map(render).collect()
}

fn metadata(root: &Path, platform: Platform) -> Result<Vec<u8>, ProcessError> {
    let mut cargo = process::cargo(root);
    cargo.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", platform.tuple()]);
    process::capture(&mut cargo)
}

/// The C library of each platform. Small programs do not contain its version, but one of them does.
fn c_libraries(platforms: &[Platform], programs: &[Built]) -> Result<BTreeMap<Platform, String>, InputError> {
    let mut found = BTreeMap::new();
    for Built { platform, path } in programs {
        found.extend(c_library_in(&read(path)?).map(|version| (*platform, version)));
    }
    match platforms.iter().find(|platform| !found.contains_key(platform)) {
        Some(platform) => Err(InputError::NoCLibrary(*platform)),
        None => Ok(found),
    }
}

/// The version of the C library in a static program, from the text that glibc puts there, such as
/// `GNU C Library (Debian GLIBC 2.41-12) stable release version 2.41`.
fn c_library_in(program: &[u8]) -> Option<String> {
    const BEFORE: &[u8] = b"GNU C Library (";
    let place = program.windows(BEFORE.len()).position(|window| window == BEFORE)?;
    let rest = program.get(place + BEFORE.len()..)?;
    let end = rest.iter().position(|byte| *byte == b')')?;
    String::from_utf8(rest.get(..end)?.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_static_program_says_which_c_library_is_in_it() {
        let program = b"\x7fELF\0\0GNU C Library (Debian GLIBC 2.41-12) stable release\0";
        assert_eq!(c_library_in(program).unwrap(), "Debian GLIBC 2.41-12");
        assert_eq!(c_library_in(b"\x7fELF"), None);
    }

    #[test]
    fn files_are_found_by_git() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let chart = tracked(root, chart::DIRECTORY).unwrap();
        assert!(chart.contains_key("Chart.yaml") && chart.contains_key("templates/_helpers.tpl"));
    }
}
