//! The process that a lab belongs to, recorded in the lab's directory.
//!
//! A process that is killed cannot stop its lab. The next start of a lab with the same name does
//! it, so that a test run that was broken off does not make the next one fail. A lab that was kept
//! belongs to nobody and stays.

use std::fs;
use std::process;

use super::LabError;
use crate::spec::LabDir;

/// Records this process as the owner.
pub(super) fn record(lab: &LabDir) -> Result<(), LabError> {
    let path = lab.owner_file();
    let id = identity(process::id()).unwrap_or_default();
    fs::write(&path, id).map_err(|source| LabError::File { path, source })
}

/// Lets the lab outlive its owner.
pub(super) fn forget(lab: &LabDir) {
    // Without the file nobody owns the lab either.
    let _ = fs::remove_file(lab.owner_file());
}

/// Whether the lab has an owner that does not run any more.
pub(super) fn is_gone(lab: &LabDir) -> bool {
    let Ok(owner) = fs::read_to_string(lab.owner_file()) else { return false };
    let pid = owner.split(' ').next().and_then(|pid| pid.parse().ok());
    pid.is_some_and(|pid| identity(pid).is_none_or(|now| now != owner))
}

/// A process, distinguished from a later one with the same id by the time of its start.
fn identity(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may contain anything. The start is the 22nd field.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let is_dead = matches!(fields.next()?, "Z" | "X");
    let began = fields.nth(18)?;
    (!is_dead).then(|| format!("{pid} {began}"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_lab_is_abandoned_once_its_owner_has_ended_unless_it_was_kept() {
        let directory = tempfile::tempdir().unwrap();
        let lab = LabDir::new(directory.path().to_owned());
        assert!(!is_gone(&lab), "it belongs to nobody");
        record(&lab).unwrap();
        assert!(!is_gone(&lab), "this process runs");

        let mut other = Command::new("sleep").arg("60").spawn().unwrap();
        let owner = identity(other.id()).unwrap();
        fs::write(lab.owner_file(), &owner).unwrap();
        assert!(!is_gone(&lab));
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(is_gone(&lab));

        fs::write(lab.owner_file(), format!("{} 1", process::id())).unwrap();
        assert!(is_gone(&lab), "another process has its id now");
        forget(&lab);
        assert!(!is_gone(&lab), "it was kept");
    }
}
