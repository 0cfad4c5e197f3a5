//! Saved runs, for a comparison.

use std::fs;
use std::path::Path;

use isp_plan::Key;

use super::ProbeError;
use super::report::Report;
use crate::error::CommandError;
use crate::output;

/// Reads a saved run, with the name of its file.
pub(crate) fn read(path: &Path) -> Result<(String, Report), CommandError> {
    let text =
        fs::read_to_string(path).map_err(|source| CommandError::File { path: path.to_owned(), source })?;
    let file = path.display().to_string();
    match serde_json::from_str(&text) {
        Ok(report) => Ok((file, report)),
        Err(error) => Err(ProbeError::Saved { file, problem: error.to_string() }.into()),
    }
}

/// Refuses to compare runs of two Services.
pub(crate) fn check(file: &str, before: &Report, service: &Key) -> Result<(), CommandError> {
    let (file, saved, service) = (file.to_owned(), before.service.clone(), service.to_string());
    if saved == service { Ok(()) } else { Err(ProbeError::OtherService { file, saved, service }.into()) }
}

/// Refuses a file in a directory that does not exist, before there is something to save.
pub(crate) fn check_place(path: &Path) -> Result<(), CommandError> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    match directory {
        Some(directory) if !directory.is_dir() => {
            Err(not_saved(path, format!("there is no directory {}", directory.display())))
        }
        _ if path.is_dir() => Err(not_saved(path, "it is a directory".to_owned())),
        _ => Ok(()),
    }
}

/// Saves a run. A file that exists is replaced.
pub(crate) fn write(path: &Path, report: &Report) -> Result<(), CommandError> {
    fs::write(path, output::json(report)?).map_err(|error| not_saved(path, error.to_string()))
}

fn not_saved(path: &Path, problem: String) -> CommandError {
    ProbeError::NotSaved { file: path.display().to_string(), problem }.into()
}
