//! A place in the lab: a thread that has entered the place's namespaces and runs jobs there.
//! Processes that it starts inherit the namespaces.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};

use super::InitError;
use crate::command;
use crate::network::Setup;

type Job = Box<dyn FnOnce() + Send>;

/// A handle to the thread of a place.
pub(crate) struct Place {
    pub(super) name: String,
    jobs: mpsc::Sender<Job>,
}

impl Place {
    /// The namespaces of init itself.
    pub(crate) fn here(name: &str) -> Result<Self, InitError> {
        Self::enter(name, || Ok(()))
    }

    /// A named network namespace.
    pub(super) fn in_network(name: &str) -> Result<Self, InitError> {
        let own = name.to_owned();
        Self::enter(name, move || enter_network(&own))
    }

    /// A node: a network namespace, and a mount namespace with the node's own directories.
    pub(super) fn of_node(name: &str, directory: &Path) -> Result<Self, InitError> {
        let (own, directory) = (name.to_owned(), directory.to_owned());
        Self::enter(name, move || {
            enter_network(&own)?;
            unshare(CloneFlags::CLONE_NEWNS)
                .map_err(|source| InitError::Namespace { what: "create a node's mount namespace", source })?;
            node_mounts(&own, &directory)
        })
    }

    fn enter(
        name: &str,
        prepare: impl FnOnce() -> Result<(), InitError> + Send + 'static,
    ) -> Result<Self, InitError> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let (entered, result) = mpsc::channel();
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                let prepared = prepare();
                let go_on = prepared.is_ok();
                let _ = entered.send(prepared);
                if go_on {
                    for job in queue {
                        job();
                    }
                }
            })
            .map_err(|source| InitError::Io { what: "start the thread of a place", source })?;
        result.recv().map_err(|_| InitError::PlaceGone(name.to_owned()))??;
        Ok(Self { name: name.to_owned(), jobs })
    }

    /// Runs `job` in this place and waits for its result.
    pub(super) fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, InitError> {
        let gone = || InitError::PlaceGone(self.name.clone());
        let (done, result) = mpsc::channel();
        let boxed: Job = Box::new(move || {
            let _ = done.send(job());
        });
        self.jobs.send(boxed).map_err(|_| gone())?;
        result.recv().map_err(|_| gone())
    }

    /// Runs a short program here. Only valid before the supervisor starts to reap, which takes
    /// every child's exit status.
    pub(super) fn command(&self, program: &str, arguments: &[&str], input: &str) -> Result<(), InitError> {
        let mut program = Command::new(program);
        program.args(arguments);
        let input = input.to_owned();
        self.run(move || command::run_with_input(&mut program, &input))?
            .map_err(|source| InitError::Network { place: self.name.clone(), source })?;
        Ok(())
    }

    /// Applies the network setup of this place.
    pub(crate) fn lay(&self, setup: Setup) -> Result<(), InitError> {
        self.command("ip", &["-batch", "-"], &setup.ip.join("\n"))?;
        let place = self.name.clone();
        self.run(move || {
            setup.sysctl.into_iter().try_for_each(|(key, value)| {
                fs::write(Path::new("/proc/sys/net").join(key), value).map_err(|source| InitError::Sysctl {
                    place: place.clone(),
                    key,
                    source,
                })
            })
        })??;
        if setup.nft.is_empty() { Ok(()) } else { self.command("nft", &["-f", "-"], &setup.nft) }
    }
}

fn enter_network(name: &str) -> Result<(), InitError> {
    let file = fs::File::open(Path::new("/run/netns").join(name))
        .map_err(|source| InitError::Io { what: "open a network namespace", source })?;
    setns(file, CloneFlags::CLONE_NEWNET)
        .map_err(|source| InitError::Namespace { what: "enter a network namespace", source })
}

/// Mounts the node's own /run, /var/lib and /var/log. Init sees this /run as `/run/nodes/<name>`.
fn node_mounts(name: &str, directory: &Path) -> Result<(), InitError> {
    let run = Path::new("/run/nodes").join(name);
    let (lib, log) = (directory.join("lib"), directory.join("log"));
    for path in [&run, &lib, &log] {
        fs::create_dir_all(path)
            .map_err(|source| InitError::Io { what: "create a node's directories", source })?;
    }
    bind(&lib, "/var/lib")?;
    bind(&log, "/var/log")?;
    bind(&run, "/run")?;
    // Bidirectional mount propagation between a pod and its node needs a shared tree. It is shared
    // with neither the host nor other nodes.
    mount_at(None, "/", None, MsFlags::MS_REC | MsFlags::MS_SHARED)
}

fn bind(from: &Path, to: &str) -> Result<(), InitError> {
    mount(Some(from), to, None::<&str>, MsFlags::MS_BIND, None::<&str>)
        .map_err(|source| InitError::Mount { path: to.into(), source })
}

pub(super) fn mount_at(
    source: Option<&str>,
    target: &str,
    kind: Option<&str>,
    flags: MsFlags,
) -> Result<(), InitError> {
    mount(source, target, kind, flags, None::<&str>)
        .map_err(|source| InitError::Mount { path: target.into(), source })
}
