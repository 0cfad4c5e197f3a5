//! Keeps evidence of a failed lab: the logs of all components and pods, and a last `kubectl get`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use super::LabError;
use crate::command;
use crate::dirs;
use crate::spec::LabDir;

/// Copies everything to a directory that outlives the lab.
pub(super) fn save(directory: &LabDir, name: &str) -> Result<PathBuf, LabError> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let target = dirs::failures()?.join(format!("{name}-{seconds}"));
    let fail = |source| LabError::File { path: target.clone(), source };
    copy_tree(&directory.logs(), &target).map_err(fail)?;
    if let Ok(nodes) = fs::read_dir(directory.path().join("nodes")) {
        for node in nodes.flatten() {
            let pods = target.join("pods").join(node.file_name());
            copy_tree(&node.path().join("log/pods"), &pods).map_err(fail)?;
        }
    }
    if let Ok(spec) = directory.spec() {
        let mut kubectl = Command::new(spec.kubectl);
        kubectl.args([
            "get",
            "nodes,pods,services,events",
            "--all-namespaces",
            "-o",
            "wide",
            "--request-timeout=5s",
        ]);
        kubectl.env("KUBECONFIG", directory.kubeconfig());
        let printed = command::output(&mut kubectl, "")?;
        fs::write(target.join("kubectl-get.txt"), printed.stdout + &printed.stderr).map_err(fail)?;
    }
    Ok(target)
}

fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    let Ok(entries) = fs::read_dir(from) else { return Ok(()) };
    for entry in entries.flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_tree(&path, &target)?;
        } else if path.is_file() {
            fs::copy(&path, &target)?;
        }
    }
    Ok(())
}
