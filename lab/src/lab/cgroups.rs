//! The control groups of a lab's pods: one parent per node, under one parent per lab. Killing a lab
//! leaves its containers' groups behind as empty directories. Supports cgroup v1 (one tree per
//! controller) and v2 (a single tree).

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::LabError;
use crate::node::{ALL_LABS, cgroup_parent};

const ROOT: &str = "/sys/fs/cgroup";

/// Creates the parent of a node's pods in every tree. The kubelet requires it to exist.
pub(super) fn create(lab: &str, node: &str) -> Result<(), LabError> {
    let relative = cgroup_parent(lab, node);
    for path in trees().into_iter().map(|tree| tree.join(relative.trim_start_matches('/'))) {
        create_all(&path).map_err(|source| LabError::File { path, source })?;
    }
    Ok(())
}

/// Retries on `NotFound`, because another lab that stops may remove the empty parent at any time.
fn create_all(path: &Path) -> io::Result<()> {
    let gone =
        |result: &io::Result<()>| result.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound);
    let mut tries = (0..10).map(|_| fs::create_dir_all(path));
    tries.find(|result| !gone(result)).unwrap_or_else(|| fs::create_dir_all(path))
}

/// Removes a lab's groups. Waits up to 3 s for processes that are still exiting.
pub(super) fn remove(lab: &str) {
    let started = Instant::now();
    loop {
        let left: Vec<PathBuf> = groups(lab).into_iter().filter(|group| !remove_tree(group)).collect();
        if left.is_empty() || started.elapsed() > Duration::from_secs(3) {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    for parent in trees().iter().map(|tree| tree.join(ALL_LABS)) {
        // Fails while another lab has groups in it.
        let _ = fs::remove_dir(parent);
    }
}

fn trees() -> Vec<PathBuf> {
    let root = Path::new(ROOT);
    if root.join("cgroup.controllers").exists() {
        return vec![root.to_owned()];
    }
    let Ok(entries) = fs::read_dir(root) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir() && !path.is_symlink()).collect()
}

fn groups(lab: &str) -> Vec<PathBuf> {
    trees().into_iter().map(|tree| tree.join(ALL_LABS).join(lab)).filter(|path| path.is_dir()).collect()
}

/// Removes children first: only a group without children can be removed. The files in it need no
/// removal.
fn remove_tree(group: &Path) -> bool {
    let Ok(entries) = fs::read_dir(group) else { return !group.exists() };
    for child in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()) {
        remove_tree(&child);
    }
    fs::remove_dir(group).is_ok() || !group.exists()
}
