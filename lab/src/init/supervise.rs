//! Supervises the components. One thread reaps every child, including orphans of containers, as
//! process 1 must. A component that exits without being stopped is restarted after a second.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, wait};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::place::Place;
use crate::components::{self, Component};
use crate::spec::LabDir;

const RESTART_DELAY: Duration = Duration::from_secs(1);

/// The status of a component.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Status {
    pub(crate) name: String,
    /// The process id inside the lab, while it runs.
    pub(crate) pid: Option<i32>,
    pub(crate) restarts: u32,
    /// The last exit code or signal, or why it could not be started.
    pub(crate) last_end: Option<String>,
}

struct Entry {
    component: Component,
    status: Status,
    wanted: bool,
}

pub(super) struct Supervisor {
    places: Vec<Place>,
    lab: LabDir,
    entries: Mutex<Vec<Entry>>,
}

impl Supervisor {
    pub(super) fn new(places: Vec<Place>, lab: LabDir, components: Vec<Component>) -> Self {
        let entries = components
            .into_iter()
            .map(|component| {
                let status = Status { name: component.name.clone(), pid: None, restarts: 0, last_end: None };
                let wanted = !component.after_api;
                Entry { component, status, wanted }
            })
            .collect();
        Self { places, lab, entries: Mutex::new(entries) }
    }

    /// Starts the components that do not need the API server. `up` starts the others once it is
    /// ready.
    pub(super) fn start_first(&self) {
        self.entries().iter_mut().filter(|entry| entry.wanted).for_each(|entry| self.spawn(entry));
    }

    /// Starts the thread that reaps every child.
    pub(super) fn reap(self: Arc<Self>) {
        thread::spawn(move || {
            loop {
                match wait() {
                    Ok(WaitStatus::Exited(pid, code)) => self.ended(pid, format!("exit code {code}")),
                    Ok(WaitStatus::Signaled(pid, signal, _)) => self.ended(pid, signal.to_string()),
                    Ok(_) | Err(Errno::EINTR) => {}
                    Err(_) => thread::sleep(Duration::from_millis(100)),
                }
            }
        });
    }

    pub(super) fn status(&self) -> Vec<Status> {
        self.entries().iter().map(|entry| entry.status.clone()).collect()
    }

    /// Starts a stopped component. Returns false if there is no component of that name.
    pub(super) fn start(&self, name: &str) -> bool {
        self.with(name, |entry| {
            entry.wanted = true;
            if entry.status.pid.is_none() {
                self.spawn(entry);
            }
        })
    }

    /// Kills a component without restarting it.
    pub(super) fn stop(&self, name: &str) -> bool {
        self.with(name, |entry| {
            entry.wanted = false;
            signal(entry, Signal::SIGKILL);
        })
    }

    /// Kills a component; it is restarted.
    pub(super) fn kill(&self, name: &str) -> bool {
        self.with(name, |entry| signal(entry, Signal::SIGKILL))
    }

    fn with(&self, name: &str, act: impl FnOnce(&mut Entry)) -> bool {
        let mut entries = self.entries();
        entries.iter_mut().find(|entry| entry.component.name == name).map(act).is_some()
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The caller holds the lock on the entries, so the process id is recorded before `reap` sees
    /// the exit.
    fn spawn(&self, entry: &mut Entry) {
        match self.try_spawn(&entry.component) {
            Ok(pid) => entry.status.pid = i32::try_from(pid).ok(),
            Err(reason) => {
                eprintln!("cannot start {}: {reason}", entry.component.name);
                entry.status.last_end = Some(reason);
            }
        }
    }

    fn try_spawn(&self, component: &Component) -> Result<u32, String> {
        let wanted = component.node.as_deref().unwrap_or("control-plane");
        let place = self
            .places
            .iter()
            .find(|place| place.name == wanted)
            .ok_or_else(|| format!("no place {wanted}"))?;
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.lab.log(&component.name))
            .map_err(|error| error.to_string())?;
        let mut command = Command::new(&component.program);
        command
            .args(&component.arguments)
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", "/root")
            .envs(components::RUNTIME)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(|error| error.to_string())?)
            .stderr(log);
        let started = place.run(move || command.spawn()).map_err(|error| error.to_string())?;
        // `reap` waits for the child, not the handle.
        started.map(|child| child.id()).map_err(|error| format!("{}: {error}", component.program.display()))
    }

    fn ended(self: &Arc<Self>, pid: Pid, how: String) {
        let mut entries = self.entries();
        let Some(entry) = entries.iter_mut().find(|entry| entry.status.pid == Some(pid.as_raw())) else {
            return;
        };
        entry.status.pid = None;
        if entry.wanted {
            eprintln!("{} exited with {how}; restarting it", entry.component.name);
            let (supervisor, name) = (self.clone(), entry.component.name.clone());
            thread::spawn(move || {
                thread::sleep(RESTART_DELAY);
                supervisor.restart(&name);
            });
        }
        entry.status.last_end = Some(how);
    }

    fn restart(&self, name: &str) {
        self.with(name, |entry| {
            if entry.wanted && entry.status.pid.is_none() {
                entry.status.restarts += 1;
                self.spawn(entry);
            }
        });
    }
}

fn signal(entry: &Entry, signal: Signal) {
    if let Some(pid) = entry.status.pid {
        // The process may have exited already; that is fine.
        let _ = kill(Pid::from_raw(pid), signal);
    }
}
