//! Decides when to rewrite the report: soon after somebody changes or deletes it, less often while
//! somebody keeps doing so, and with growing pauses while writes fail. Pure.

use std::time::Duration;

use tokio::time::Instant;
use tracing::{debug, info, warn};

/// The watch shows the agent's own write a moment later. An older state before that is not a change
/// by somebody else.
const WATCH_LAG: Duration = Duration::from_secs(1);
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// After this time without a repair, the pauses start over.
const QUIET: Duration = Duration::from_mins(5);

/// Paces the repairs of a report that somebody changes.
#[derive(Debug, Default)]
pub(super) struct RepairPacing {
    /// Since when the object differs from the written report.
    differs_since: Option<Instant>,
    /// The last repair and the pause after it.
    last: Option<(Instant, Duration)>,
}

impl RepairPacing {
    /// Returns the time until the next repair, or `None` if the object is as written.
    pub(super) fn due(&mut self, differs: bool, now: Instant) -> Option<Duration> {
        if !differs {
            self.differs_since = None;
            return None;
        }
        let confirmed = *self.differs_since.get_or_insert(now) + WATCH_LAG;
        let paused = self.last.map_or(confirmed, |(at, pause)| at + pause);
        Some(confirmed.max(paused).saturating_duration_since(now))
    }

    /// Records a repair.
    pub(super) fn done(&mut self, now: Instant) {
        let pause = match self.last {
            Some((at, pause)) if now.saturating_duration_since(at) < QUIET => (pause * 2).min(LONGEST_PAUSE),
            _ => FIRST_PAUSE,
        };
        info!(next = ?pause, "rewrote the report of this node, which somebody had changed or deleted");
        self.last = Some((now, pause));
        self.differs_since = None;
    }
}

const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(15);
const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// Paces failing writes and their log lines, for as long as the API server is down or the CRD is
/// missing.
#[derive(Debug, Default)]
pub(super) struct WriteBackoff {
    /// The time of the next attempt and the wait before it.
    next: Option<(Instant, Duration)>,
    logged: Option<Instant>,
}

impl WriteBackoff {
    pub(super) fn wait(&self, now: Instant) -> Duration {
        self.next.map_or(Duration::ZERO, |(at, _)| at.saturating_duration_since(now))
    }

    /// Records the result of a write.
    pub(super) fn record(&mut self, result: Result<(), String>, now: Instant) {
        let Err(error) = result else {
            if self.next.is_some() {
                info!("wrote the report of this node after earlier failures");
            }
            *self = Self::default();
            return;
        };
        let wait = self.next.map_or(FIRST_WAIT, |(_, wait)| (wait * 2).min(LONGEST_WAIT));
        self.next = Some((now + wait, wait));
        if self.logged.is_none_or(|logged| now.saturating_duration_since(logged) >= LOG_INTERVAL) {
            warn!(error, "cannot write the report of this node; retrying");
            self.logged = Some(now);
        } else {
            debug!(error, "cannot write the report of this node");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_change_is_repaired_within_seconds_and_one_that_passes_is_not() {
        let (mut repairs, now) = (RepairPacing::default(), Instant::now());
        assert_eq!(repairs.due(false, now), None);
        assert_eq!(repairs.due(true, now), Some(SECOND), "it may be the past");
        assert_eq!(repairs.due(false, now + SECOND / 2), None, "it was");
        assert_eq!(repairs.due(true, now + SECOND), Some(SECOND));
        assert_eq!(repairs.due(true, now + 2 * SECOND), Some(Duration::ZERO));
    }

    #[test]
    fn somebody_who_keeps_changing_it_is_not_fought() {
        let (mut repairs, start) = (RepairPacing::default(), Instant::now());
        let (mut now, mut count) = (start, 0);
        while now < start + Duration::from_hours(1) {
            match repairs.due(true, now) {
                Some(Duration::ZERO) => {
                    repairs.done(now);
                    count += 1;
                }
                Some(wait) => now += wait,
                None => panic!("it differs"),
            }
        }
        assert!((60..70).contains(&count), "{count} repairs in an hour");
        now += QUIET;
        assert_eq!(repairs.due(false, now), None);
        assert_eq!(repairs.due(true, now), Some(SECOND), "much later it is the first again");
        repairs.done(now + SECOND);
        assert!(repairs.due(true, now + 2 * SECOND).unwrap() <= FIRST_PAUSE);
    }

    #[test]
    fn writes_that_fail_are_tried_less_often_and_one_that_works_forgets_it() {
        let (mut backoff, now) = (WriteBackoff::default(), Instant::now());
        assert_eq!(backoff.wait(now), Duration::ZERO);
        for seconds in [1, 2, 4, 8, 15, 15] {
            backoff.record(Err("gone".to_owned()), now);
            assert_eq!(backoff.wait(now), Duration::from_secs(seconds));
        }
        backoff.record(Ok(()), now);
        assert_eq!(backoff.wait(now), Duration::ZERO);
    }
}
