//! Pages in a real browser: Chromium, driven by its `DevTools` protocol through a pipe.
//!
//! The protocol is JSON with a NUL after each message, on the descriptors 3 and 4 of the browser. A
//! shell maps its standard input and output to them.

mod keys;
mod page;
mod pipe;
pub mod report;

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use isp_lab::provision;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, geteuid};
use serde_json::json;

pub use self::keys::Key;
pub use self::page::{Media, Page};
use self::pipe::Pipe;

/// Maps standard input and output to the descriptors of the protocol.
const MAP_PIPES: &str = r#"exec "$@" 3<&0 4>&1 0</dev/null 1>&2"#;

/// A running browser. It ends with this value.
pub struct Browser {
    child: Child,
    pipe: Option<Pipe>,
    /// The profile and the log. It outlives the process.
    directory: tempfile::TempDir,
    axe: PathBuf,
}

impl Browser {
    /// Starts a browser without a window. It can reach this machine only.
    pub fn start() -> Self {
        let provided = provision::browser(|line| eprintln!("{line}")).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", MAP_PIPES, "sh"]).arg(provided.chromium);
        command.args(["--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu"]);
        command.args(["--disable-dev-shm-usage", "--disable-background-networking", "--hide-scrollbars"]);
        command.args(["--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"]);
        command.arg(format!("--user-data-dir={}", directory.path().join("profile").display()));
        if geteuid().is_root() {
            // Chromium's sandbox refuses to run as root.
            command.arg("--no-sandbox");
        }
        let log = File::create(directory.path().join("log")).unwrap();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).process_group(0);
        let mut child = command.spawn().unwrap();
        let pipe = Pipe::new(child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, pipe: Some(pipe), directory, axe: provided.axe }
    }

    /// Opens a page, and waits until it has loaded.
    pub fn open(&mut self, address: &str) -> Page<'_> {
        self.open_with(address, true)
    }

    /// Opens a page whose own scripts do not run.
    pub fn open_without_scripts(&mut self, address: &str) -> Page<'_> {
        self.open_with(address, false)
    }

    fn open_with(&mut self, address: &str, scripts: bool) -> Page<'_> {
        let axe = std::fs::read_to_string(&self.axe).unwrap();
        let log = self.directory.path().join("log");
        Page::open(self.pipe.as_mut().unwrap(), address, scripts, axe, log)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            pipe.send(None, "Browser.close", &json!({}));
        }
        // Its helpers are in the same process group.
        let _ = killpg(Pid::from_raw(self.child.id().try_into().unwrap()), Signal::SIGKILL);
        let _ = self.child.wait();
    }
}
