//! The files of a release, for tests that use nothing else.
//!
//! `cargo xtask soak release` makes the files of two releases, this one and the one before, by
//! `cargo xtask release`. In the test layers that would take too long: there, files of the same
//! names stand in for them, made of the tests' own programs.

mod stand_in;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use isp_lab::docs::{Block, Terminal};
use isp_lab::{Lab, provision, release};
use tempfile::TempDir;

use self::stand_in::Parts;

/// The variables with the directories of the two releases.
const THIS: &str = "ISP_SOAK_RELEASE";
const BEFORE: &str = "ISP_SOAK_RELEASE_BEFORE";
/// The registry in the stand-in for the release before. Its images need other names than those of
/// this one.
const REGISTRY_BEFORE: &str = "localhost/isp-before";

/// The name of the file with the objects to install.
const INSTALL: &str = "install.yaml";

/// Whether the releases are real ones.
pub fn is_campaign() -> bool {
    env::var_os(THIS).is_some()
}

/// The files of a release, and a shell of somebody who has them and no checkout.
pub struct Release {
    /// The shell, in a copy of the files.
    pub terminal: Terminal,
    /// The registry of its images, and their tag.
    images: (String, String),
}

impl Release {
    /// The release of this tree. In a stand-in, the images are of the programs beside `program`,
    /// and the plugin is that of this path.
    pub async fn this(lab: &Lab, program: &Path, plugin: Option<&Path>) -> Self {
        let parts = Parts { program, plugin, registry: release::REGISTRY };
        Self::of(lab, THIS, parts).await
    }

    /// The release before. In a stand-in it has the same programs under other names.
    pub async fn before(lab: &Lab, program: &Path) -> Self {
        Self::of(lab, BEFORE, Parts { program, plugin: None, registry: REGISTRY_BEFORE }).await
    }

    async fn of(lab: &Lab, variable: &str, parts: Parts<'_>) -> Self {
        let kubectl = lab.program("kubectl").unwrap();
        let helm = tokio::task::spawn_blocking(|| provision::helm(|line| eprintln!("{line}")));
        let helm = helm.await.unwrap().unwrap();
        let stand_in: TempDir;
        let directory = if let Some(made) = env::var_os(variable) {
            PathBuf::from(made)
        } else {
            stand_in = tempfile::tempdir().unwrap();
            parts.write(&kubectl, &helm, stand_in.path());
            stand_in.path().to_owned()
        };
        let images = images(&fs::read_to_string(directory.join(INSTALL)).unwrap());
        let terminal = Terminal::open_without_checkout(&lab.kubeconfig(), &[&kubectl, &helm], &directory);
        Self { terminal: terminal.unwrap(), images }
    }

    /// Runs a block of commands, none of which may fail, and returns its output.
    pub async fn run(&self, block: &Block) -> String {
        self.terminal.run(block).await.unwrap_or_else(|error| panic!("{error}")).stdout
    }

    /// Runs a block with a command of `ctr` on each node, beside the files.
    pub async fn run_on_nodes(&self, lab: &Lab, block: &Block) {
        let [command] = &block.words()[..] else { panic!("one command in {block}") };
        assert_eq!(command[0], "ctr", "{block}");
        lab.ctr_on_each_node(self.terminal.directory(), &command[1..]).await.unwrap();
    }

    /// The full name of a program's image.
    pub fn image(&self, program: &str) -> String {
        let (registry, tag) = &self.images;
        format!("{registry}/{program}:{tag}")
    }
}

/// The registry and the tag of the images in a manifest.
fn images(manifest: &str) -> (String, String) {
    let mut references = manifest.split_whitespace().filter_map(|word| word.split_once("/operator:"));
    let (registry, tag) = references.next().unwrap();
    (registry.to_owned(), tag.to_owned())
}
