//! Generated files that are committed: `crds/*.yaml`, from the types of the api crate, the
//! templates of the Helm chart, from the kustomize manifests, and `docs/schemas/*.json`, from the
//! types that the plugin prints.
//!
//! The generators of the CRDs and of the schemas are example programs of the crates with the types.
//! Each writes its files to a given directory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fmt, fs, io};

use thiserror::Error;

use crate::chart::{self, ChartError};
use crate::process::{self, ProcessError};
use crate::workspace::Workspace;

/// The example programs that write files.
const CRDS: &str = "crdgen";
const SCHEMAS: &str = "schemagen";

/// File contents by name.
type Files = BTreeMap<String, Vec<u8>>;

/// Generates the files of a directory.
type Generator = fn(&Workspace) -> Result<Files, GeneratedError>;

/// The directories with generated YAML or JSON files, in order: later ones depend on earlier ones.
const DIRECTORIES: [(&str, Generator); 3] = [
    ("crds", |workspace| by_example(workspace, CRDS)),
    ("manifests/chart/templates", |workspace| Ok(chart::templates(&workspace.root)?)),
    ("docs/schemas", |workspace| by_example(workspace, SCHEMAS)),
];

/// A file, by path, that differs from the generator's output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Drift {
    Missing(String),
    Different(String),
    Extra(String),
}

impl fmt::Display for Drift {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => write!(out, "{path} is missing"),
            Self::Different(path) => write!(out, "{path} differs from its source"),
            Self::Extra(path) => write!(out, "{path} is not generated; delete it"),
        }
    }
}

/// Why generated files could not be written, or are out of date.
#[derive(Debug, Error)]
pub(crate) enum GeneratedError {
    #[error("cannot generate")]
    Generator(#[source] ProcessError),
    #[error("cannot generate: {0} wrote no file")]
    Nothing(&'static str),
    #[error("cannot generate the chart's templates")]
    Chart(#[from] ChartError),
    #[error("cannot access {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{}; run `cargo xtask generate`", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    OutOfDate(Vec<Drift>),
}

/// Writes all generated files to the repository and removes obsolete ones.
pub(crate) fn write(workspace: &Workspace) -> Result<(), GeneratedError> {
    for (directory, generate) in DIRECTORIES {
        let generated = generate(workspace)?;
        let committed = read(&workspace.root.join(directory))?;
        for drift in compare(directory, &committed, &generated) {
            let (Drift::Missing(file) | Drift::Different(file) | Drift::Extra(file)) = &drift;
            let path = workspace.root.join(file);
            let content = path.file_name().and_then(|name| generated.get(name.to_str()?));
            let (done, result) = match content {
                Some(content) => ("wrote", fs::write(&path, content)),
                None => ("removed", fs::remove_file(&path)),
            };
            result.map_err(|source| GeneratedError::File { path, source })?;
            println!("{done} {file}");
        }
    }
    Ok(())
}

/// Fails if the repository's files differ from the generators' output.
pub(crate) fn check(workspace: &Workspace) -> Result<(), GeneratedError> {
    let mut drift = Vec::new();
    for (directory, generate) in DIRECTORIES {
        let committed = read(&workspace.root.join(directory))?;
        drift.extend(compare(directory, &committed, &generate(workspace)?));
    }
    if drift.is_empty() { Ok(()) } else { Err(GeneratedError::OutOfDate(drift)) }
}

/// The files that an example program writes, from the current types.
fn by_example(workspace: &Workspace, generator: &'static str) -> Result<Files, GeneratedError> {
    let mut cargo = process::cargo(&workspace.root);
    process::run(cargo.args(["build", "--quiet", "--workspace", "--example", generator]))
        .map_err(GeneratedError::Generator)?;

    let scratch = workspace.scratch(generator);
    fs::create_dir_all(&scratch).map_err(|source| GeneratedError::File { path: scratch.clone(), source })?;
    let files = process::run(Command::new(workspace.example(generator)).arg(&scratch))
        .map_err(GeneratedError::Generator)
        .and_then(|()| read(&scratch));
    fs::remove_dir_all(&scratch).map_err(|source| GeneratedError::File { path: scratch, source })?;
    files.and_then(|files| if files.is_empty() { Err(GeneratedError::Nothing(generator)) } else { Ok(files) })
}

/// The YAML and JSON files of a directory; empty if it does not exist.
fn read(directory: &Path) -> Result<Files, GeneratedError> {
    let in_file = |path: &Path| {
        let path = path.to_owned();
        move |source| GeneratedError::File { path, source }
    };
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Files::new()),
        entries => entries.map_err(in_file(directory))?,
    };
    let mut files = Files::new();
    for entry in entries {
        let path = entry.map_err(in_file(directory))?.path();
        if path.extension().is_some_and(|extension| extension == "yaml" || extension == "json") {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            files.insert(name, fs::read(&path).map_err(in_file(&path))?);
        }
    }
    Ok(files)
}

fn compare(directory: &str, committed: &Files, generated: &Files) -> Vec<Drift> {
    let names: BTreeSet<_> = committed.keys().chain(generated.keys()).collect();
    let drift = names.into_iter().filter_map(|name| {
        let path = format!("{directory}/{name}");
        match (committed.get(name), generated.get(name)) {
            (None, _) => Some(Drift::Missing(path)),
            (_, None) => Some(Drift::Extra(path)),
            (Some(old), Some(new)) => (old != new).then_some(Drift::Different(path)),
        }
    });
    drift.collect()
}

#[cfg(test)]
mod tests;
