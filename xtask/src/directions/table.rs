//! The last column of the crate table in `docs/ARCHITECTURE.md`, generated from the rules: which of
//! the workspace's crates each crate may use. The other columns are written by hand.

use std::path::PathBuf;
use std::{fs, io};

use thiserror::Error;

use super::{Ours, RULES, Rule};
use crate::workspace::{Package, Workspace};

#[cfg(test)]
mod tests;

const PAGE: &str = "docs/ARCHITECTURE.md";
/// How the header of the table ends.
const COLUMN: &str = "| may depend on |";

/// Why the column could not be written, or is out of date.
#[derive(Debug, Error)]
pub(crate) enum TableError {
    #[error("cannot access {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{PAGE} has no row for {0}: add it to the table whose header ends in \"{COLUMN}\"")]
    NoRow(String),
    #[error("{PAGE} has a row for {0}, which is not a crate with a rule: remove it")]
    ExtraRow(String),
    #[error(
        "the dependencies in {PAGE} differ from the rules in xtask/src/directions.rs; run `cargo xtask generate`"
    )]
    OutOfDate,
}

/// Writes the column if it has changed.
pub(crate) fn write(workspace: &Workspace) -> Result<(), TableError> {
    let (path, committed) = read(workspace)?;
    let updated = update(&committed, &workspace.packages)?;
    if updated != committed {
        fs::write(&path, updated).map_err(|source| TableError::File { path, source })?;
        println!("wrote {PAGE}");
    }
    Ok(())
}

/// Fails if the column is out of date.
pub(crate) fn check(workspace: &Workspace) -> Result<(), TableError> {
    let (_, committed) = read(workspace)?;
    if update(&committed, &workspace.packages)? == committed { Ok(()) } else { Err(TableError::OutOfDate) }
}

fn read(workspace: &Workspace) -> Result<(PathBuf, String), TableError> {
    let path = workspace.root.join(PAGE);
    match fs::read_to_string(&path) {
        Ok(text) => Ok((path, text)),
        Err(source) => Err(TableError::File { path, source }),
    }
}

/// The page with the current column.
fn update(page: &str, packages: &[Package]) -> Result<String, TableError> {
    let (mut updated, mut in_table, mut rows) = (Vec::new(), false, Vec::new());
    for line in page.lines() {
        let row = line.strip_suffix('|').and_then(|row| row.rsplit_once('|'));
        match (line.split('`').nth(1), row) {
            (Some(name), Some((rest, _))) if in_table => {
                let rule =
                    RULES.iter().find(|rule| rule.of == name && packages.iter().any(|p| p.name == name));
                let rule = rule.ok_or_else(|| TableError::ExtraRow(name.to_owned()))?;
                updated.push(format!("{rest}| {} |\n", rule.describe(packages)));
                rows.push(name);
            }
            _ => {
                in_table = line.ends_with(COLUMN) || (in_table && line.starts_with('|'));
                updated.push(format!("{line}\n"));
            }
        }
    }
    match packages.iter().find(|package| !rows.contains(&package.name.as_str())) {
        Some(missing) => Err(TableError::NoRow(missing.name.clone())),
        None => Ok(updated.concat()),
    }
}

impl Rule {
    /// The allowed crates, without those that do not exist yet.
    fn describe(&self, packages: &[Package]) -> String {
        let quote = |name: &&str| format!("`{name}`");
        let ours = match self.ours {
            Ours::Any => "any".to_owned(),
            Ours::Only(names) => {
                let exists = |name: &&&str| packages.iter().any(|package| package.name == **name);
                names.iter().filter(exists).map(quote).collect::<Vec<_>>().join(", ")
            }
        };
        let ours = if ours.is_empty() { "none".to_owned() } else { ours };
        match self.never {
            [] => ours,
            never => format!("{ours}; never {}", never.iter().map(quote).collect::<Vec<_>>().join(", ")),
        }
    }
}
