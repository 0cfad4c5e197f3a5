//! A reader's shell, with the programs that the pages assume: in a checkout of the repository, or
//! in a directory with the files of a release and nothing else.

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
use crate::provision::{ProvisionError, find_program, is_root};

/// The limit for one block. Commands that wait for a cluster have longer timeouts, for clusters of
/// any size.
const DEADLINE: Duration = Duration::from_mins(4);

/// The programs of the host that a shell without a checkout has: no compiler, no cargo, no git.
const STOCK: [&str; 7] = ["bash", "cat", "grep", "gzip", "mkdir", "sha256sum", "tar"];
/// Where users put programs of their own, below their home directory.
const OWN_PROGRAMS: &str = ".local/bin";
/// Covers a directory, in a mount namespace of its own, and runs a command there.
const COVER: &str = r#""$0" -t tmpfs -o ro none "$1" && shift && exec "$@""#;

/// A shell in a temporary directory, which receives the files that blocks write and is removed with
/// this handle.
pub struct Terminal {
    directory: TempDir,
    /// The first directory on the PATH, and the home directory.
    programs: TempDir,
    kubeconfig: PathBuf,
    has_checkout: bool,
}

impl Terminal {
    /// Opens a shell with these programs first on the PATH, each under its file name. Its directory
    /// mirrors the repository.
    pub fn open(kubeconfig: &Path, programs: &[&Path]) -> Result<Self, DocsError> {
        let terminal = Self::empty(kubeconfig, programs, true)?;
        for path in entries(repository())? {
            link(&path, terminal.directory())?;
        }
        Ok(terminal)
    }

    /// Opens a shell in a copy of a directory, with these programs and a few of the host's on the
    /// PATH, and those that blocks put into `~/.local/bin`. The repository is hidden from it, so
    /// that a block fails if it reads a file from there. This takes root or user namespaces.
    pub fn open_without_checkout(
        kubeconfig: &Path,
        programs: &[&Path],
        files: &Path,
    ) -> Result<Self, DocsError> {
        let terminal = Self::empty(kubeconfig, programs, false)?;
        for program in STOCK {
            link(&host(program)?, terminal.programs.path())?;
        }
        for path in entries(files)? {
            let copy = terminal.directory().join(path.file_name().unwrap_or_default());
            fs::copy(&path, copy).map_err(|source| file(&path, source))?;
        }
        Ok(terminal)
    }

    fn empty(kubeconfig: &Path, programs: &[&Path], has_checkout: bool) -> Result<Self, DocsError> {
        let new = || tempfile::tempdir().map_err(|source| file(&env::temp_dir(), source));
        let (directory, kubeconfig) = (new()?, kubeconfig.to_owned());
        let terminal = Self { directory, programs: new()?, kubeconfig, has_checkout };
        for program in programs {
            link(program, terminal.programs.path())?;
        }
        Ok(terminal)
    }

    /// The working directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
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
        let mut bash = self.bash()?;
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

    /// The command that runs bash, without its arguments.
    fn bash(&self) -> Result<Command, DocsError> {
        if self.has_checkout {
            return Ok(Command::new("bash"));
        }
        let mut command = Command::new(host("unshare")?);
        command.args(if is_root() { &[][..] } else { &["--map-root-user"] }).args(["--mount", "--"]);
        command.arg(host("sh")?).args(["-c", COVER]).arg(host("mount")?);
        command.arg(repository()).arg(host("bash")?);
        Ok(command)
    }

    fn path(&self) -> OsString {
        let mut path = self.programs.path().as_os_str().to_owned();
        path.push(":");
        if self.has_checkout {
            path.push(env::var_os("PATH").unwrap_or_default());
        } else {
            path.push(self.programs.path().join(OWN_PROGRAMS));
        }
        path
    }
}

/// A program of the host.
fn host(program: &str) -> Result<PathBuf, DocsError> {
    Ok(find_program(program).ok_or_else(|| ProvisionError::NotProvisioned(program.to_owned()))?)
}

/// The paths of everything in a directory.
fn entries(directory: &Path) -> Result<Vec<PathBuf>, DocsError> {
    let failed = |source| file(directory, source);
    let listed = fs::read_dir(directory).map_err(failed)?;
    listed.map(|entry| Ok(entry.map_err(failed)?.path())).collect()
}

/// Makes a link of the same name in a directory.
fn link(path: &Path, to: &Path) -> Result<(), DocsError> {
    let name = path.file_name().unwrap_or_default();
    symlink(path, to.join(name)).map_err(|source| file(path, source))
}

fn file(path: &Path, source: std::io::Error) -> DocsError {
    DocsError::File { path: path.to_owned(), source }
}
