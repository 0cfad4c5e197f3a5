//! Liveness. Each task that must never block for long holds a [`Pulse`] and beats it on every
//! iteration. The program is healthy while no task has been silent longer than its declared limit.
//!
//! Any response at all proves that the runtime makes progress. Conditions that outsiders can cause,
//! such as a slow API server or a full listener, must not affect health: a failing liveness probe
//! restarts the program.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Cheap to clone; all clones share the same state.
#[derive(Debug, Clone, Default)]
pub struct Health {
    tasks: Arc<Mutex<BTreeMap<Task, Beat>>>,
}

/// A task's name, and a number that tells tasks of the same name apart.
type Task = (&'static str, usize);

#[derive(Debug, Clone, Copy)]
struct Beat {
    last: Instant,
    within: Duration,
}

impl Health {
    /// Registers a task, which must then beat at least once per `within` until its pulse is
    /// dropped.
    pub fn register(&self, name: &'static str, within: Duration) -> Pulse {
        let mut tasks = self.tasks();
        let number = tasks.range((name, 0)..=(name, usize::MAX)).last().map_or(0, |((_, last), _)| last + 1);
        let task = (name, number);
        tasks.insert(task, Beat { last: Instant::now(), within });
        Pulse { task, health: self.clone() }
    }

    /// The tasks that have been silent for too long, and for how long. Empty when the program is
    /// healthy.
    pub fn silent(&self) -> Vec<(&'static str, Duration)> {
        self.silent_at(Instant::now())
    }

    fn silent_at(&self, now: Instant) -> Vec<(&'static str, Duration)> {
        let tasks = self.tasks();
        let silent = tasks
            .iter()
            .map(|((name, _), beat)| (*name, now.saturating_duration_since(beat.last), beat.within));
        silent.filter(|(_, silent, within)| silent > within).map(|(name, silent, _)| (name, silent)).collect()
    }

    /// The map is consistent between any two statements, so poisoning is ignored.
    fn tasks(&self) -> MutexGuard<'_, BTreeMap<Task, Beat>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pulse of one task.
#[derive(Debug)]
pub struct Pulse {
    task: Task,
    health: Health,
}

impl Pulse {
    /// Records that the task made progress.
    pub fn beat(&self) {
        if let Some(beat) = self.health.tasks().get_mut(&self.task) {
            beat.last = Instant::now();
        }
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.health.tasks().remove(&self.task);
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
    #[test]
    fn tasks_of_the_same_name_are_watched_one_by_one() {
        let health = Health::default();
        let first = health.register("report", Duration::from_mins(1));
        let second = health.register("report", Duration::from_secs(10));
        let later = Instant::now() + Duration::from_secs(30);
        assert_eq!(health.silent_at(later).len(), 1, "only the second one is silent for too long");
        drop(second);
        assert!(health.silent_at(later).is_empty());
        let _third = health.register("report", Duration::from_secs(10));
        drop(first);
        assert_eq!(health.silent_at(later).len(), 1, "the end of one task does not hide another");
    }
}
