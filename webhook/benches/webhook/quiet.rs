//! Stops all processes but the measured one.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Stopped processes, which continue when it is dropped.
pub(crate) struct Quiet(Vec<Pid>);

impl Quiet {
    /// Stops these processes except the measured one.
    pub(crate) fn around(measured: u32, processes: &[u32]) -> Self {
        let others = processes.iter().filter(|process| **process != measured);
        let others: Vec<_> = others.map(|process| Pid::from_raw(process.cast_signed())).collect();
        for process in &others {
            // The process may have ended.
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

/// All descendants of this process.
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
