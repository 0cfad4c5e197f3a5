//! The real `helm`, and the chart.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use isp_lab::provision;
use isp_testkit::repository;

pub(crate) fn chart() -> String {
    repository::path("manifests/chart")
}

pub(crate) fn say(line: &str) {
    eprintln!("{line}");
}

/// Runs helm and returns its stdout, or its stderr if it failed. It does not touch the user's helm
/// configuration.
pub(crate) fn helm(kubeconfig: &Path, arguments: &[&str]) -> Result<String, String> {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| provision::helm(say).unwrap());
    let home = tempfile::tempdir().unwrap();
    let mut helm = Command::new(program);
    helm.args(arguments).env("KUBECONFIG", kubeconfig).env("HOME", home.path());
    for place in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        helm.env(place, home.path().join(place));
    }
    printed(&helm.output().unwrap())
}

/// The stdout of a program, or its stderr if it failed.
pub(crate) fn printed(output: &Output) -> Result<String, String> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
