//! Whether a program still turns. Each task that should never rest for long keeps a [`Pulse`] and beats it on every turn; the program is
//! healthy while none has been silent for longer than it said it would be.
//!
//! That an answer comes at all shows that the runtime turns. What a caller outside could bring about, a slow API server or a full
//! listener, is no part of it: health that fails has the program ended.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Cheap to clone; all clones are the same health.
#[derive(Debug, Clone, Default)]
pub struct Health {
    tasks: Arc<Mutex<BTreeMap<&'static str, Beat>>>,
}

#[derive(Debug, Clone, Copy)]
struct Beat {
    last: Instant,
    within: Duration,
}

impl Health {
    /// From now on the task of this name has to beat within this time, again and again, until its pulse is dropped.
    pub fn register(&self, name: &'static str, within: Duration) -> Pulse {
        self.tasks().insert(name, Beat { last: Instant::now(), within });
        Pulse { name, health: self.clone() }
    }

    /// The tasks that have been silent for too long, and for how long; empty when the program is healthy.
    pub fn silent(&self) -> Vec<(&'static str, Duration)> {
        self.silent_at(Instant::now())
    }

    fn silent_at(&self, now: Instant) -> Vec<(&'static str, Duration)> {
        let tasks = self.tasks();
        let silent =
            tasks.iter().map(|(name, beat)| (*name, now.saturating_duration_since(beat.last), beat.within));
        silent.filter(|(_, silent, within)| silent > within).map(|(name, silent, _)| (name, silent)).collect()
    }

    /// Whole between any two statements.
    fn tasks(&self) -> MutexGuard<'_, BTreeMap<&'static str, Beat>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pulse of one task.
#[derive(Debug)]
pub struct Pulse {
    name: &'static str,
    health: Health,
}

impl Pulse {
    /// The task has turned.
    pub fn beat(&self) {
        if let Some(beat) = self.health.tasks().get_mut(self.name) {
            beat.last = Instant::now();
        }
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.health.tasks().remove(self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_rests_for_too_long_is_named_until_it_turns_again() {
        let health = Health::default();
        assert!(health.silent().is_empty());
        let listener = health.register("listener", Duration::from_secs(10));
        let report = health.register("report", Duration::from_mins(1));
        let now = Instant::now();
        let after = |seconds| health.silent_at(now + Duration::from_secs(seconds));
        let names = |seconds| after(seconds).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(5), [""; 0]);
        assert_eq!(names(15), ["listener"]);
        assert!(after(15)[0].1 >= Duration::from_secs(15));
        assert_eq!(names(100), ["listener", "report"]);
        drop(listener);
        assert_eq!(names(100), ["report"], "a task that has ended ends the program itself");
        report.beat();
        assert_eq!(names(5), [""; 0]);
    }
}
