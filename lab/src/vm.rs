//! A virtual machine on the lab's fabric, with a kernel of its own, for what the host's kernel lacks. It stands where
//! a node would, with a node's addresses and routes, but without kubelet and containers.
//!
//! `builder` puts its files together and starts qemu inside the lab, so that it ends with the lab; `modules` picks the
//! modules of its kernel, `qemu` says how it is started. Inside, the lab's own program is the first process (`guest`).
//! It does what it is asked over a serial port (`protocol`), which works whatever the machine's network does.

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

/// How long a command in the machine may take; it is slow, having to emulate its processor.
const COMMAND_DEADLINE: Duration = Duration::from_mins(1);
const LONGEST_ANSWER: u64 = 16 << 20;
/// Enough to see what was before a kernel's last words.
const CONSOLE_LINES: usize = 60;

/// What can go wrong with a virtual machine.
#[derive(Debug, Error)]
pub enum VmError {
    /// Something of the lab's.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// It does not answer.
    #[error("the virtual machine {name} {why}; its console ends with\n{console}")]
    Lost {
        /// Its name.
        name: String,
        /// What is known.
        why: String,
        /// The last lines of its console.
        console: String,
    },
    /// It did not do what it was asked.
    #[error("the virtual machine {name}: {said}")]
    Refused {
        /// Its name.
        name: String,
        /// What it said.
        said: String,
    },
}

/// A virtual machine that is up. It ends with this value, and with the lab.
pub struct Vm<'a> {
    lab: &'a Lab,
    node: Node,
    qemu: Child,
    remove_cable: Command,
    /// Nothing when an answer is still due that nobody waits for any more.
    control: Mutex<Option<BufReader<UnixStream>>>,
}

impl Vm<'_> {
    /// A new virtual machine to be.
    pub fn builder(name: impl Into<String>) -> VmBuilder {
        VmBuilder::new(name.into())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.node.name.as_str()
    }

    /// Its first address on the fabric.
    pub fn address(&self) -> IpAddr {
        self.node.addresses(self.lab.topology().families)[0]
    }

    /// Runs a program in it to its end, whatever that is.
    pub async fn run<S: AsRef<str>>(&self, arguments: &[S]) -> Result<Output, VmError> {
        match self.ask_guest(&Request::Run(owned(arguments)), COMMAND_DEADLINE).await? {
            Answer::Ran(output) => Ok(output),
            Answer::Done => Err(self.refused("answered something else than was asked")),
        }
    }

    /// Starts a program that goes on running; what it prints is on the console.
    pub async fn start<S: AsRef<str>>(&self, name: &str, arguments: &[S]) -> Result<(), VmError> {
        let request = Request::Start { name: name.to_owned(), arguments: owned(arguments) };
        self.ask_guest(&request, COMMAND_DEADLINE).await.map(drop)
    }

    /// Ends a program that was started and still runs.
    pub async fn stop(&self, name: &str) -> Result<(), VmError> {
        self.ask_guest(&Request::Stop(name.to_owned()), COMMAND_DEADLINE).await.map(drop)
    }

    /// Asks whatever listens at `target` (host and port) once from it. Waits 2 s at most.
    pub async fn ask(&self, protocol: Protocol, target: &str) -> Result<lab::Answer, VmError> {
        let output = self.run(&["echo", "ask", &protocol.to_string(), target]).await?;
        Ok(lab::Answer::read(&output))
    }

    /// What was on its console so far: the kernel, and all programs that were started.
    pub fn console(&self) -> String {
        fs::read(console_file(self.lab, self.name()))
            .map_or_else(|error| error.to_string(), |text| String::from_utf8_lossy(&text).into_owned())
    }

    async fn ask_guest(&self, request: &Request, deadline: Duration) -> Result<Answer, VmError> {
        let mut control = self.control.lock().await;
        let mut stream = control.take().ok_or_else(|| self.lost("was lost in an earlier command"))?;
        let answer = tokio::time::timeout(deadline, exchange(&mut stream, request)).await;
        let line = match answer {
            Ok(Ok(line)) if line.ends_with('\n') => line,
            Ok(Ok(_)) => return Err(self.lost("ended")),
            Ok(Err(error)) => return Err(self.lost(&format!("cannot be asked: {error}"))),
            Err(_) => return Err(self.lost(&format!("did not answer within {} s", deadline.as_secs()))),
        };
        *control = Some(stream);
        match serde_json::from_str::<Result<Answer, String>>(&line) {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(said)) => Err(self.refused(&said)),
            Err(error) => Err(self.refused(&format!("answered something unexpected: {error}"))),
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
            eprintln!("the console of the virtual machine {} ends with\n{console}", self.name());
        }
        // What was started is what entered the lab; qemu itself dies with it.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
        // When the lab has ended already, so has its network.
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
