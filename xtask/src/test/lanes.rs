//! Runs test programs side by side, in order, but never two at once that disturb each other.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Runs every item on one of so many lanes. An item waits while one that it must not meet runs.
pub(super) fn run_all<T: Sync, R: Send>(
    items: &[T],
    lanes: usize,
    must_not_meet: impl Fn(&T, &T) -> bool + Sync,
    run: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let state =
        Mutex::new(State { waiting: items.iter().collect(), running: Vec::new(), results: Vec::new() });
    let ended = Condvar::new();
    let lane = || {
        loop {
            let mut now = lock(&state);
            let item = loop {
                if now.waiting.is_empty() {
                    return;
                }
                let may_run = |item: &&T| !now.running.iter().any(|other| must_not_meet(item, other));
                match now.waiting.iter().position(may_run) {
                    Some(place) => break now.waiting.remove(place),
                    None => now = ended.wait(now).unwrap_or_else(PoisonError::into_inner),
                }
            };
            let Some(item) = item else { return };
            now.running.push(item);
            drop(now);
            let result = run(item);
            let mut now = lock(&state);
            now.results.push(result);
            now.running.retain(|other| !std::ptr::eq(*other, item));
            ended.notify_all();
        }
    };
    thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(lane);
        }
    });
    state.into_inner().unwrap_or_else(PoisonError::into_inner).results
}

struct State<'a, T, R> {
    waiting: VecDeque<&'a T>,
    running: Vec<&'a T>,
    results: Vec<R>,
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn everything_runs_and_the_lanes_are_used_but_two_that_must_not_meet_do_not() {
        let (running, most, met) = (Mutex::new(Vec::new()), AtomicUsize::new(0), AtomicUsize::new(0));
        let apart = |one: &i32, other: &i32| one % 3 == 0 && other % 3 == 0;
        let mut results = run_all(&[0, 3, 6, 1, 2, 9], 3, apart, |item| {
            let mut now = lock(&running);
            now.push(*item);
            most.fetch_max(now.len(), Ordering::Relaxed);
            met.fetch_max(now.iter().filter(|each| **each % 3 == 0).count(), Ordering::Relaxed);
            drop(now);
            thread::sleep(Duration::from_millis(30));
            lock(&running).retain(|each| each != item);
            *item
        });
        results.sort_unstable();
        assert_eq!(results, [0, 1, 2, 3, 6, 9]);
        assert_eq!(met.into_inner(), 1);
        assert!((2..=3).contains(&most.into_inner()));
    }
}
