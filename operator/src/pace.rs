//! Decides when to plan: soon after a change, but once for a burst of changes. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// Changes within this time of each other share a plan.
const SETTLE: Duration = Duration::from_millis(50);
/// Maximum delay under constant change.
const LONGEST: Duration = Duration::from_millis(500);
/// Minimum time between two plans.
const SHORTEST: Duration = Duration::from_millis(20);

/// Inputs for the time of the next plan.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// The first and the last change since the last plan.
    changes: Option<(Instant, Instant)>,
    /// Skip the settle time.
    at_once: bool,
    /// When the last plan asked to be run again.
    wake: Option<Instant>,
    planned: Option<Instant>,
}

impl Pace {
    /// Records a change.
    pub(crate) fn changed(&mut self, now: Instant) {
        let first = self.changes.map_or(now, |(first, _)| first);
        self.changes = Some((first, now));
    }

    /// Makes the next plan due without settle time.
    pub(crate) fn hurry(&mut self) {
        self.at_once = true;
    }

    /// Records a plan, and when to plan again even without a change.
    pub(crate) fn planned(&mut self, now: Instant, wake: Option<Instant>) {
        *self = Self { wake, planned: Some(now), ..Self::default() };
    }

    /// When the last plan was made.
    pub(crate) fn last(&self) -> Option<Instant> {
        self.planned
    }

    /// When to plan next, or None at rest.
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        let settled = self.changes.map(|(first, last)| (last + SETTLE).min(first + LONGEST));
        let due = [self.at_once.then_some(now), settled, self.wake].into_iter().flatten().min()?;
        Some(self.planned.map_or(due, |planned| due.max(planned + SHORTEST)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(start: Instant, milliseconds: u64) -> Instant {
        start + Duration::from_millis(milliseconds)
    }

    #[test]
    fn at_rest_nothing_is_due() {
        let now = Instant::now();
        let mut pace = Pace::default();
        assert_eq!(pace.due(now), None);
        pace.changed(now);
        pace.planned(now, None);
        assert_eq!(pace.due(now), None);
    }

    #[test]
    fn changes_settle_but_constant_change_does_not_put_it_off_for_ever() {
        let start = Instant::now();
        let mut pace = Pace::default();
        pace.changed(start);
        assert_eq!(pace.due(start), Some(after(start, 50)));
        pace.changed(after(start, 40));
        assert_eq!(pace.due(start), Some(after(start, 90)));
        for step in 2..60 {
            pace.changed(after(start, 20 * step));
        }
        assert_eq!(pace.due(start), Some(after(start, 500)));
    }

    #[test]
    fn after_an_action_it_is_at_once_but_never_a_busy_loop() {
        let start = Instant::now();
        let mut pace = Pace::default();
        pace.hurry();
        assert_eq!(pace.due(start), Some(start));
        pace.planned(start, Some(start));
        assert_eq!(pace.due(start), Some(after(start, 20)), "a wake in the past is no reason to spin");
        pace.planned(start, None);
        pace.hurry();
        assert_eq!(pace.due(after(start, 1)), Some(after(start, 20)));
        assert_eq!(pace.due(after(start, 30)), Some(after(start, 30)));
    }

    #[test]
    fn a_wake_is_kept_until_the_next_plan_and_a_change_comes_first() {
        let start = Instant::now();
        let mut pace = Pace::default();
        pace.planned(start, Some(after(start, 30_000)));
        assert_eq!(pace.due(start), Some(after(start, 30_000)));
        pace.changed(after(start, 100));
        assert_eq!(pace.due(after(start, 100)), Some(after(start, 150)));
    }
}
