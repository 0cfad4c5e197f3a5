//! A reader's shell: the repository as working directory, and the programs that the pages assume.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::{Block, DocsError, repository};
use crate::command::{CommandError, Output};

/// The limit for one block. Commands that wait for a cluster have longer timeouts, for clusters of
/// any size.
const DEADLINE: Duration = Duration::from_mins(4);

/// A shell in a temporary directory that mirrors the repository and receives files that blocks
/// write. It is removed with this handle.
pub struct Terminal {
    directory: TempDir,
    programs: TempDir,
    kubeconfig: PathBuf,
}

impl Terminal {
    /// Opens a shell with these programs first on the PATH, each under its file name.
    pub fn open(kubeconfig: &Path, programs: &[&Path]) -> Result<Self, DocsError> {
        let new = || tempfile::tempdir().map_err(|source| file(&env::temp_dir(), source));
        let (directory, beside) = (new()?, new()?);
        let link = |path: &Path, to: &Path| {
            let name = path.file_name().unwrap_or_default();
            symlink(path, to.join(name)).map_err(|source| file(path, source))
        };
        for program in programs {
            link(program, beside.path())?;
        }
        let root = repository();
        for entry in fs::read_dir(root).map_err(|source| file(root, source))? {
            link(&entry.map_err(|source| file(root, source))?.path(), directory.path())?;
        }
        Ok(Self { directory, programs: beside, kubeconfig: kubeconfig.to_owned() })
    }

    /// Saves a file, as a page tells its reader to.
    pub fn save(&self, name: &str, text: &str) -> Result<(), DocsError> {
        let path = self.directory.path().join(name);
        fs::write(&path, text).map_err(|source| file(&path, source))
    }

    /// Runs a block and fails if a command fails.
    pub async fn run(&self, block: &Block) -> Result<Output, DocsError> {
        let output = self.run_to_its_end(block).await?;
        if output.success {
            return Ok(output);
        }
        Err(DocsError::Failed { block: Box::new(block.clone()), output: Box::new(output) })
    }

    /// Runs a block until a command fails or all are done, and returns the output either way.
    pub async fn run_to_its_end(&self, block: &Block) -> Result<Output, DocsError> {
        let start = |source| CommandError::Start { command: format!("bash for {block}"), source };
        // The script is a file: commands could consume a script on standard input.
        let script = self.programs.path().join("block");
        fs::write(&script, block.commands()).map_err(|source| file(&script, source))?;
        let mut bash = Command::new("bash");
        bash.args(["-euo", "pipefail"]).arg(&script).current_dir(self.directory.path());
        bash.env_clear().env("PATH", self.path()).env("HOME", self.programs.path());
        bash.env("KUBECONFIG", &self.kubeconfig);
        // Its own process group, so that all its processes can be killed.
        bash.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = tokio::process::Command::from(bash).kill_on_drop(true).spawn().map_err(start)?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        let ended = tokio::time::timeout(DEADLINE, child.wait_with_output()).await;
        let Ok(output) = ended else {
            if let Some(group) = group {
                // The group may have ended just now.
                let _ = killpg(group, Signal::SIGKILL);
            }
            return Err(DocsError::Endless { block: Box::new(block.clone()), deadline: DEADLINE });
        };
        Ok(output.map_err(start)?.into())
    }

    fn path(&self) -> OsString {
        let mut path = self.programs.path().as_os_str().to_owned();
        path.push(":");
        path.push(env::var_os("PATH").unwrap_or_default());
        path
    }
}

fn file(path: &Path, source: std::io::Error) -> DocsError {
    DocsError::File { path: path.to_owned(), source }
}
