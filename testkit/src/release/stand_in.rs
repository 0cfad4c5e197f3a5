//! Files that stand in for those of a release. `cargo xtask release` makes the real ones, with
//! programs that take long to build.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use isp_lab::release;

use super::INSTALL;
use crate::images::PROGRAMS;
use crate::repository;

/// What the files are made of.
pub(super) struct Parts<'a> {
    /// A program; those of the images are beside it.
    pub(super) program: &'a Path,
    pub(super) plugin: Option<&'a Path>,
    /// The registry in the names of the images.
    pub(super) registry: &'a str,
}

impl Parts<'_> {
    /// Writes the files that tests use to a directory.
    pub(super) fn write(&self, kubectl: &Path, helm: &Path, to: &Path) {
        let programs: Vec<PathBuf> = PROGRAMS.iter().map(|name| self.program.with_file_name(name)).collect();
        release::write(&programs, self.registry, &to.join("images.tar")).unwrap();
        let overlay = repository::file("manifests/overlays/default");
        let rendered = printed(Command::new(kubectl).arg("kustomize").arg(overlay));
        fs::write(to.join(INSTALL), self.renamed(&rendered)).unwrap();
        self.pack_chart(helm, to);
        if let Some(plugin) = self.plugin {
            pack_plugin(plugin, to);
        }
        let names = fs::read_dir(to).unwrap().map(|entry| entry.unwrap().file_name());
        let checksums = printed(Command::new("sha256sum").current_dir(to).args(names));
        fs::write(to.join("SHA256SUMS"), checksums).unwrap();
    }

    /// A manifest with the registry of these images.
    fn renamed(&self, manifest: &str) -> String {
        manifest.replace(release::REGISTRY, self.registry)
    }

    fn pack_chart(&self, helm: &Path, to: &Path) {
        let copy = tempfile::tempdir().unwrap();
        let chart = repository::file("manifests/chart");
        printed(Command::new("cp").arg("--recursive").arg(chart).arg(copy.path()));
        let values = copy.path().join("chart/values.yaml");
        fs::write(&values, self.renamed(&fs::read_to_string(&values).unwrap())).unwrap();
        let mut package = Command::new(helm);
        package.arg("package").arg(copy.path().join("chart")).arg("--destination").arg(to);
        printed(package.env("HOME", copy.path()));
    }
}

/// Packs the plugin and its completion.
fn pack_plugin(plugin: &Path, to: &Path) {
    let archive = format!("kubectl-isp-{}-linux-amd64.tar.gz", env!("CARGO_PKG_VERSION"));
    let mut tar = Command::new("tar");
    tar.args(["--create", "--gzip", "--file"]).arg(to.join(archive));
    for file in [plugin, &repository::file("cli/kubectl_complete-isp")] {
        tar.arg("--directory").arg(file.parent().unwrap()).arg(file.file_name().unwrap());
    }
    printed(&mut tar);
}

/// The output of a command, which must succeed.
fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
