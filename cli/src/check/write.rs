//! The file of `--write`. It appears whole or not at all, and replaces nothing unless told to.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::CommandError;

#[cfg(test)]
mod tests;

fn failed(path: &Path) -> impl Fn(io::Error) -> CommandError + '_ {
    |source| CommandError::NotWritten { path: path.to_owned(), source }
}

/// Refuses a file that exists.
pub(super) fn refuse_existing(path: &Path) -> Result<(), CommandError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Err(CommandError::FileExists(path.to_owned())),
        Err(_) => Ok(()),
    }
}

/// Writes a file by way of another one in its directory.
pub(super) fn write(path: &Path, text: &str, force: bool) -> Result<(), CommandError> {
    let failed = failed(path);
    let beside = beside(path);
    let written = create(&beside, text)
        .and_then(|()| if force { fs::rename(&beside, path) } else { link(&beside, path) });
    if !force || written.is_err() {
        // Another file has the text now, or none is wanted.
        let _ = fs::remove_file(&beside);
    }
    match written {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !force => {
            Err(CommandError::FileExists(path.to_owned()))
        }
        written => written.map_err(failed),
    }
}

fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}", std::process::id()))
}

fn create(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Gives the file another name, which must be free. Where the file system knows no links, another
/// process could create the file between the two steps.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            if fs::symlink_metadata(to).is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            fs::rename(from, to)
        }
        linked => linked,
    }
}
