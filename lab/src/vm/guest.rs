//! The first process of a virtual machine: mounts the usual file systems, loads modules, sets up
//! the network, and executes requests from the serial port. It does not exit in normal operation;
//! if it does, the kernel panics and qemu ends.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use thiserror::Error;

use super::modules;
use super::protocol::{Answer, IDENTITY, Identity, Request};
use crate::command::{self, CommandError};
use crate::init::{InitError, Place};
use crate::network;

/// The only port of the only virtio-serial device.
const PORT: &str = "/dev/vport0p1";
const PORT_DEADLINE: Duration = Duration::from_secs(20);
const LONGEST_REQUEST: u64 = 64 << 10;
const STOP_DEADLINE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// Why the machine failed to start. The error is on its console.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum GuestError {
    #[error("cannot mount {target}: {source}")]
    Mount { target: &'static str, source: Errno },
    #[error("cannot load the kernel's modules: {0}")]
    Modules(#[from] CommandError),
    #[error(transparent)]
    Network(#[from] InitError),
    #[error("cannot access {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
}

/// Runs the first process. Returns only on error.
pub fn run() -> Result<Infallible, GuestError> {
    for (kind, target) in
        [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/run"), ("tmpfs", "/tmp")]
    {
        mount(Some(kind), target, Some(kind), MsFlags::empty(), None::<&str>)
            .map_err(|source| GuestError::Mount { target, source })?;
    }
    command::run(&mut program(&modules::load_command()))?;
    let identity = fs::read(IDENTITY).and_then(|text| Ok(serde_json::from_slice::<Identity>(&text)?));
    let identity = identity.map_err(fail(IDENTITY))?;
    Place::here("the machine")?.lay(network::node(&identity.topology, &identity.node))?;
    serve(Path::new(PORT)).map_err(fail(PORT))
}

fn fail(path: &'static str) -> impl FnOnce(io::Error) -> GuestError {
    move |source| GuestError::File { path: path.into(), source }
}

fn serve(path: &Path) -> io::Result<Infallible> {
    // The device node appears shortly after its driver is loaded.
    let started = Instant::now();
    while !path.exists() && started.elapsed() < PORT_DEADLINE {
        thread::sleep(POLL);
    }
    let mut port = OpenOptions::new().read(true).write(true).open(path)?;
    let mut reader = BufReader::new(port.try_clone()?);
    let mut programs = Programs::default();
    loop {
        let mut line = Vec::new();
        if reader.by_ref().take(LONGEST_REQUEST).read_until(b'\n', &mut line)? == 0 {
            // The host has not connected yet.
            thread::sleep(POLL);
            continue;
        }
        let answer = serde_json::from_slice(&line)
            .map_or_else(|error| Err(error.to_string()), |request| programs.act(request));
        let mut text = serde_json::to_vec(&answer)?;
        text.push(b'\n');
        port.write_all(&text)?;
    }
}

/// The long-running programs. Their orphans are not reaped, because a machine is short-lived.
#[derive(Default)]
struct Programs(BTreeMap<String, Child>);

impl Programs {
    fn act(&mut self, request: Request) -> Result<Answer, String> {
        match request {
            Request::Ready => Ok(Answer::Done),
            Request::Run(arguments) => {
                let output = command::output(&mut program(&arguments), "");
                output.map(Answer::Ran).map_err(|error| error.to_string())
            }
            Request::Start { name, arguments } => self.start(name, &arguments),
            Request::Stop(name) => self.stop(&name),
        }
    }

    /// Starts a program with its output on the console.
    fn start(&mut self, name: String, arguments: &[String]) -> Result<Answer, String> {
        if self.0.contains_key(&name) {
            return Err(format!("{name} is already running"));
        }
        let child = program(arguments).stdin(Stdio::null()).spawn();
        self.0.insert(name, child.map_err(|error| format!("cannot run {arguments:?}: {error}"))?);
        Ok(Answer::Done)
    }

    fn stop(&mut self, name: &str) -> Result<Answer, String> {
        let mut child = self.0.remove(name).ok_or_else(|| format!("{name} was not started"))?;
        let ended = child.try_wait().map_err(|error| error.to_string())?;
        if let Some(status) = ended {
            return Err(format!("{name} had already exited with {status}"));
        }
        end(&mut child).map_err(|error| format!("cannot stop {name}: {error}"))?;
        Ok(Answer::Done)
    }
}

/// Sends SIGTERM, and SIGKILL after a timeout.
fn end(child: &mut Child) -> io::Result<ExitStatus> {
    let pid = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    kill(pid, Signal::SIGTERM)?;
    let asked = Instant::now();
    while asked.elapsed() < STOP_DEADLINE {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        thread::sleep(POLL);
    }
    child.kill()?;
    child.wait()
}

fn program(arguments: &[impl AsRef<str>]) -> Command {
    let mut words = arguments.iter().map(AsRef::as_ref);
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(programs: &mut Programs, request: &str) -> Result<Answer, String> {
        programs.act(serde_json::from_str(request).unwrap())
    }

    #[test]
    fn a_program_that_runs_to_its_end_tells_how_and_what() {
        let answer = ask(&mut Programs::default(), r#"{"Run":["ls","/", "/no/such"]}"#);
        let Ok(Answer::Ran(output)) = answer else { panic!("{answer:?}") };
        assert_eq!((output.success, output.code), (false, Some(2)));
        assert!(output.stdout.contains("usr") && output.stderr.contains("/no/such"), "{output:?}");
        let missing = ask(&mut Programs::default(), r#"{"Run":["no-such-program"]}"#).unwrap_err();
        assert!(missing.contains("cannot run no-such-program"), "{missing}");
    }

    #[test]
    fn a_program_goes_on_until_it_is_ended_and_only_then_can_be_started_anew() {
        let programs = &mut Programs::default();
        let start = r#"{"Start":{"name":"sleeper","arguments":["sleep","600"]}}"#;
        for _ in 0..2 {
            assert_eq!(ask(programs, start), Ok(Answer::Done));
            assert_eq!(ask(programs, start), Err("sleeper is already running".to_owned()));
            assert_eq!(ask(programs, r#"{"Stop":"sleeper"}"#), Ok(Answer::Done));
        }
        assert_eq!(ask(programs, r#"{"Stop":"sleeper"}"#), Err("sleeper was not started".to_owned()));
    }

    #[test]
    fn a_program_that_ended_by_itself_is_told_when_it_is_to_be_ended() {
        let programs = &mut Programs::default();
        ask(programs, r#"{"Start":{"name":"brief","arguments":["false"]}}"#).unwrap();
        let child = programs.0.get_mut("brief").unwrap();
        child.wait().unwrap();
        let said = ask(programs, r#"{"Stop":"brief"}"#).unwrap_err();
        assert_eq!(said, "brief had already exited with exit status: 1");
    }
}
