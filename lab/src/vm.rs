//! A virtual machine on the lab's fabric with its own kernel, for features that the host's kernel
//! lacks. It has the addresses and routes of a node, but no kubelet and no containers.
//!
//! `builder` assembles its files and starts qemu inside the lab, so that it ends with the lab.
//! `modules` selects its kernel modules, and `qemu` generates the command line. The lab's own
//! program is the first process inside (`guest`). It takes requests over a serial port
//! (`protocol`), which works independently of the machine's network.

mod builder;
mod guest;
mod modules;
mod protocol;
mod qemu;

use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::Mutex;

pub use self::builder::VmBuilder;
pub use self::guest::{GuestError, run as run_guest};
use self::protocol::{Answer, Request};
use crate::command::{self, Output};
use crate::lab::{self, Lab, LabError, Protocol};
use crate::topology::Node;

/// The limit for a command in the machine, which is slow because its CPU is emulated.
const COMMAND_DEADLINE: Duration = Duration::from_mins(1);
const LONGEST_ANSWER: u64 = 16 << 20;
/// The number of console lines in errors: enough to see the context of a kernel panic.
const CONSOLE_LINES: usize = 60;

/// Errors of a virtual machine's operations.
#[derive(Debug, Error)]
pub enum VmError {
    /// The lab failed.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The machine does not answer.
    #[error("virtual machine {name} {why}; the end of its console:\n{console}")]
    Lost {
        /// The machine's name.
        name: String,
        /// What is known about the cause.
        why: String,
        /// The last lines of its console.
        console: String,
    },
    /// The machine could not execute a request.
    #[error("virtual machine {name}: {said}")]
    Refused {
        /// The machine's name.
        name: String,
        /// The reason it gave.
        said: String,
    },
}

/// A running virtual machine. It ends when this value is dropped, or with the lab.
pub struct Vm<'a> {
    lab: &'a Lab,
    node: Node,
    qemu: Child,
    remove_cable: Command,
    /// `None` after a failed request, whose answer may still arrive and would be taken for the next
    /// one's.
    control: Mutex<Option<BufReader<UnixStream>>>,
}

impl Vm<'_> {
    /// Starts the description of a new virtual machine.
    pub fn builder(name: impl Into<String>) -> VmBuilder {
        VmBuilder::new(name.into())
    }

    /// The machine's name.
    pub fn name(&self) -> &str {
        self.node.name.as_str()
    }

    /// The machine's first address on the fabric.
    pub fn address(&self) -> IpAddr {
        self.node.addresses(self.lab.topology().families)[0]
    }

    /// Runs a program in the machine and returns its output, whatever the exit code.
    pub async fn run<S: AsRef<str>>(&self, arguments: &[S]) -> Result<Output, VmError> {
        match self.ask_guest(&Request::Run(owned(arguments)), COMMAND_DEADLINE).await? {
            Answer::Ran(output) => Ok(output),
            Answer::Done => Err(self.refused("answered another request")),
        }
    }

    /// Starts a long-running program. Its output goes to the console.
    pub async fn start<S: AsRef<str>>(&self, name: &str, arguments: &[S]) -> Result<(), VmError> {
        let request = Request::Start { name: name.to_owned(), arguments: owned(arguments) };
        self.ask_guest(&request, COMMAND_DEADLINE).await.map(drop)
    }

    /// Stops a running program that was started with [`start`](Self::start).
    pub async fn stop(&self, name: &str) -> Result<(), VmError> {
        self.ask_guest(&Request::Stop(name.to_owned()), COMMAND_DEADLINE).await.map(drop)
    }

    /// Sends one request from the machine to `target` (host and port). Times out after 2 s.
    pub async fn ask(&self, protocol: Protocol, target: &str) -> Result<lab::Answer, VmError> {
        let output = self.run(&["echo", "ask", &protocol.to_string(), target]).await?;
        Ok(lab::Answer::read(&output))
    }

    /// The console output so far: the kernel's, and that of all started programs.
    pub fn console(&self) -> String {
        fs::read(console_file(self.lab, self.name()))
            .map_or_else(|error| error.to_string(), |text| String::from_utf8_lossy(&text).into_owned())
    }

    async fn ask_guest(&self, request: &Request, deadline: Duration) -> Result<Answer, VmError> {
        let mut control = self.control.lock().await;
        let mut stream = control.take().ok_or_else(|| self.lost("was lost during an earlier command"))?;
        let answer = tokio::time::timeout(deadline, exchange(&mut stream, request)).await;
        let line = match answer {
            Ok(Ok(line)) if line.ends_with('\n') => line,
            Ok(Ok(_)) => return Err(self.lost("ended")),
            Ok(Err(error)) => return Err(self.lost(&format!("is not reachable: {error}"))),
            Err(_) => return Err(self.lost(&format!("did not answer within {} s", deadline.as_secs()))),
        };
        *control = Some(stream);
        match serde_json::from_str::<Result<Answer, String>>(&line) {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(said)) => Err(self.refused(&said)),
            Err(error) => Err(self.refused(&format!("sent an unexpected response: {error}"))),
        }
    }

    fn lost(&self, why: &str) -> VmError {
        let console = command::last_lines(&self.console(), CONSOLE_LINES);
        VmError::Lost { name: self.name().to_owned(), why: why.to_owned(), console }
    }

    fn refused(&self, said: &str) -> VmError {
        VmError::Refused { name: self.name().to_owned(), said: said.to_owned() }
    }
}

impl Drop for Vm<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let console = command::last_lines(&self.console(), CONSOLE_LINES);
            eprintln!("the end of the console of virtual machine {}:\n{console}", self.name());
        }
        // This kills nsenter, the parent process; qemu dies with it by its parent-death signal.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
        // Fails if the lab has already ended, and its network with it.
        let _ = command::run(&mut self.remove_cable);
    }
}

async fn exchange(stream: &mut BufReader<UnixStream>, request: &Request) -> std::io::Result<String> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    let mut answer = String::new();
    stream.take(LONGEST_ANSWER).read_line(&mut answer).await?;
    Ok(answer)
}

fn console_file(lab: &Lab, name: &str) -> PathBuf {
    lab.directory().log(&format!("{name}/console"))
}

fn owned<S: AsRef<str>>(arguments: &[S]) -> Vec<String> {
    arguments.iter().map(|argument| argument.as_ref().to_owned()).collect()
}
