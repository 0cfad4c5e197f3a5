//! Readiness: the conditions that a program still waits for.
//!
//! A program registers each condition by name and holds the guard until the condition is met. It is
//! ready while no guard is held. The admin server lists the names. A program that has registered
//! nothing counts as ready, so the first conditions must be registered before that server starts.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use tracing::info;

/// Cheap to clone; all clones share the same state.
#[derive(Debug, Clone, Default)]
pub struct Readiness {
    /// The number of guards per name.
    held: Arc<Mutex<BTreeMap<&'static str, usize>>>,
}

impl Readiness {
    /// Adds a condition; the program is not ready until the guard is dropped.
    pub fn register(&self, name: &'static str) -> Pending {
        *self.held().entry(name).or_default() += 1;
        Pending { name, readiness: self.clone() }
    }

    /// The names of pending conditions, sorted, each once. Empty when the program is ready.
    pub fn pending(&self) -> Vec<&'static str> {
        self.held().keys().copied().collect()
    }

    fn release(&self, name: &'static str) {
        let mut held = self.held();
        if let Some(count) = held.get_mut(name) {
            *count -= 1;
            if *count == 0 {
                held.remove(name);
            }
        }
        let pending = held.len();
        drop(held);
        info!(name, pending, "readiness: no longer waiting");
    }

    /// The map is consistent between any two statements, so poisoning is ignored.
    fn held(&self) -> MutexGuard<'_, BTreeMap<&'static str, usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A pending condition; dropping it marks the condition as met.
///
/// If it is dropped by a panic, the condition stays pending: the program is not ready because a
/// part of it failed.
#[derive(Debug)]
#[must_use = "the program counts as ready as soon as this is dropped"]
pub struct Pending {
    name: &'static str,
    readiness: Readiness,
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.readiness.release(self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_waits_for_nothing_is_ready() {
        assert!(Readiness::default().pending().is_empty());
    }

    #[test]
    fn a_program_is_ready_once_every_guard_is_dropped() {
        let readiness = Readiness::default();
        let view = readiness.register("view");
        let certificate = readiness.clone().register("certificate");
        assert_eq!(readiness.pending(), ["certificate", "view"]);
        drop(view);
        assert_eq!(readiness.pending(), ["certificate"]);
        drop(certificate);
        assert!(readiness.pending().is_empty());
    }

    #[test]
    fn a_name_registered_twice_is_pending_until_both_guards_are_dropped() {
        let readiness = Readiness::default();
        let first = readiness.register("view");
        let second = readiness.register("view");
        drop(first);
        assert_eq!(readiness.pending(), ["view"]);
        drop(second);
        assert!(readiness.pending().is_empty());
    }

    #[test]
    fn a_panic_does_not_make_a_program_ready() {
        let readiness = Readiness::default();
        let guard = readiness.register("view");
        let failed = thread::spawn(move || {
            let _guard = guard;
            panic!("on purpose");
        });
        failed.join().unwrap_err();
        assert_eq!(readiness.pending(), ["view"]);
    }
}
