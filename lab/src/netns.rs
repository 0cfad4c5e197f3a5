//! A few network namespaces joined by veth pairs, without a cluster: tests load rules into the real
//! kernel and send real connections through them. Needs root, or user namespaces.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};
use thiserror::Error;

use crate::command::{self, CommandError, Output};
use crate::provision::is_root;

/// Why the namespaces could not be created.
#[derive(Debug, Error)]
pub enum NetNsError {
    /// A setup command failed.
    #[error("{0}; network namespaces need root, or a kernel that allows user namespaces, and veth")]
    Command(#[from] CommandError),
    /// The namespaces were not created in time.
    #[error("cannot create the namespaces: {0}")]
    NotMade(String),
    /// A thread could not enter a namespace.
    #[error("cannot enter the network namespace {place}: {source}; this needs root")]
    Entrance {
        /// The namespace.
        place: String,
        /// The reason.
        source: std::io::Error,
    },
}

/// One end of a veth pair.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    /// The namespace.
    pub place: &'a str,
    /// The name of its interface there.
    pub interface: &'a str,
    /// The interface's addresses, with prefix lengths.
    pub addresses: &'a [&'a str],
}

/// A set of network namespaces. Dropping it, or ending this process, removes them and kills
/// everything in them.
pub struct NetNs {
    holder: Child,
    target: u32,
}

/// The way into a network namespace.
#[derive(Debug)]
pub struct Entrance {
    place: String,
    namespace: File,
}

impl Entrance {
    /// Moves the current thread into the namespace, for good. Sockets that it opens then stay
    /// there, whichever thread uses them.
    pub fn enter(&self) -> Result<(), NetNsError> {
        setns(&self.namespace, CloneFlags::CLONE_NEWNET)
            .map_err(|errno| NetNsError::Entrance { place: self.place.clone(), source: errno.into() })
    }
}

impl NetNs {
    /// Creates namespaces with these names.
    pub fn new(names: &[&str]) -> Result<Self, NetNsError> {
        let mut unshare = Command::new("unshare");
        if !is_root() {
            unshare.args(["--user", "--map-root-user"]);
        }
        unshare.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]);
        // `cat` holds the namespaces until its input is closed. That happens whenever this process
        // ends, even if it is killed.
        unshare.arg("cat").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let holder = unshare
            .spawn()
            .map_err(|source| CommandError::Start { command: command::describe(&unshare), source })?;
        let mut this = Self { holder, target: 0 };
        this.target = this.find_holder()?;
        this.run(&["mount", "-t", "tmpfs", "tmpfs", "/run"], "")?;
        for name in names {
            this.run(&["ip", "netns", "add", name], "")?;
            this.run(&["ip", "-n", name, "link", "set", "lo", "up"], "")?;
            // Duplicate address detection would delay forwarding by a second or two.
            this.check(name, &["sysctl", "-qw", "net.ipv6.conf.default.accept_dad=0"], "")?;
        }
        Ok(this)
    }

    /// Joins two namespaces with a veth pair.
    pub fn cable(&self, one: End<'_>, other: End<'_>) -> Result<(), NetNsError> {
        let mut lines = vec![format!(
            "link add {} netns {} type veth peer name {} netns {}",
            one.interface, one.place, other.interface, other.place
        )];
        self.run(&["ip", "-batch", "-"], &lines.join("\n"))?;
        for end in [one, other] {
            lines = vec![format!("link set {} up", end.interface)];
            lines.extend(end.addresses.iter().map(|address| {
                let family = if address.contains(':') { " nodad" } else { "" };
                format!("address add {address} dev {}{family}", end.interface)
            }));
            self.run(&["ip", "-n", end.place, "-batch", "-"], &lines.join("\n"))?;
        }
        Ok(())
    }

    /// Runs a program in a namespace and returns its output, whatever the exit code.
    pub fn exec(&self, place: &str, arguments: &[&str], input: &str) -> Result<Output, NetNsError> {
        Ok(command::output(&mut self.command(place, arguments), input)?)
    }

    /// Runs a program in a namespace and fails unless its exit code is 0.
    pub fn check(&self, place: &str, arguments: &[&str], input: &str) -> Result<Output, NetNsError> {
        Ok(command::run_with_input(&mut self.command(place, arguments), input)?)
    }

    /// A command that runs in a namespace. It is killed with the namespaces.
    pub fn command(&self, place: &str, arguments: &[&str]) -> Command {
        let mut command = self.enter();
        command.arg("nsenter").arg(format!("--net=/run/netns/{place}")).arg("--").args(arguments);
        command
    }

    /// The way into a namespace for a thread of this process. Needs root.
    pub fn entrance(&self, place: &str) -> Result<Entrance, NetNsError> {
        let open = File::open(format!("/proc/{}/root/run/netns/{place}", self.target));
        let namespace = open.map_err(|source| NetNsError::Entrance { place: place.to_owned(), source })?;
        Ok(Entrance { place: place.to_owned(), namespace })
    }

    fn run(&self, arguments: &[&str], input: &str) -> Result<Output, NetNsError> {
        let mut command = self.enter();
        Ok(command::run_with_input(command.args(arguments), input)?)
    }

    fn enter(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--target={}", self.target));
        if !is_root() {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.args(["--net", "--mount", "--pid", "--"]);
        command
    }

    /// The process id of `unshare`'s child, once it holds the namespaces.
    fn find_holder(&mut self) -> Result<u32, NetNsError> {
        let (parent, started) = (self.holder.id(), Instant::now());
        while started.elapsed() < Duration::from_secs(10) {
            if let Ok(Some(_)) = self.holder.try_wait() {
                let mut reason = String::new();
                if let Some(mut stderr) = self.holder.stderr.take() {
                    let _ = std::io::Read::read_to_string(&mut stderr, &mut reason);
                }
                return Err(NetNsError::NotMade(reason.trim().to_owned()));
            }
            let children =
                fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
            let child = children.split_whitespace().next().and_then(|child| child.parse().ok());
            let is_cat = |child: &u32| {
                fs::read_to_string(format!("/proc/{child}/comm")).is_ok_and(|name| name.trim() == "cat")
            };
            if let Some(child) = child.filter(is_cat) {
                return Ok(child);
            }
            thread::sleep(Duration::from_millis(5));
        }
        Err(NetNsError::NotMade("the process that holds the namespaces did not start within 10 s".to_owned()))
    }
}

impl Drop for NetNs {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        // When the first process of a pid namespace ends, the kernel kills all others in it.
        let _ = self.holder.wait();
    }
}
