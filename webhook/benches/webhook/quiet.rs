//! Only what is measured runs.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// As long as it is there, processes are held.
pub(crate) struct Quiet(Vec<Pid>);

impl Quiet {
    /// Holds these, but for the one that is measured.
    pub(crate) fn around(measured: u32, processes: &[u32]) -> Self {
        let others = processes.iter().filter(|process| **process != measured);
        let others: Vec<_> = others.map(|process| Pid::from_raw(process.cast_signed())).collect();
        for process in &others {
            // One that has ended is quiet, too.
            let _ = kill(*process, Signal::SIGSTOP);
        }
        Self(others)
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        for process in &self.0 {
            let _ = kill(*process, Signal::SIGCONT);
        }
    }
}

/// Everything that this process has started, and what that has.
pub(crate) fn started() -> Vec<u32> {
    started_by(std::process::id())
}

fn started_by(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let ids = |list: String| list.split(' ').filter_map(|id| id.parse().ok()).collect::<Vec<u32>>();
    let children: Vec<u32> = lists.flat_map(ids).collect();
    children.into_iter().flat_map(|child| std::iter::once(child).chain(started_by(child))).collect()
}
