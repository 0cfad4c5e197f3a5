//! When the object is written again: soon after somebody has changed or deleted it, less and less often while somebody keeps doing so, and
//! with growing pauses while it cannot be written. Pure.

use std::time::Duration;

use tokio::time::Instant;
use tracing::{debug, info, warn};

/// A watch tells of the agent's own write a moment after it; an older state that comes in between is no change of somebody else's.
const LAG: Duration = Duration::from_secs(1);
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// After that long without a repair, the next one is the first again.
const QUIET: Duration = Duration::from_mins(5);

/// Paces repairs.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    /// Since when the object has not been as it was written.
    differs_since: Option<Instant>,
    /// The last repair, and the pause after it.
    last: Option<(Instant, Duration)>,
}

impl Repairs {
    /// How long to wait until the object is to be written again; none when it is as it should be.
    pub(super) fn due(&mut self, differs: bool, now: Instant) -> Option<Duration> {
        if !differs {
            self.differs_since = None;
            return None;
        }
        let seen = *self.differs_since.get_or_insert(now) + LAG;
        let paused = self.last.map_or(seen, |(at, pause)| at + pause);
        Some(seen.max(paused).saturating_duration_since(now))
    }

    /// It was written again.
    pub(super) fn done(&mut self, now: Instant) {
        let pause = match self.last {
            Some((at, pause)) if now.saturating_duration_since(at) < QUIET => (pause * 2).min(LONGEST_PAUSE),
            _ => FIRST_PAUSE,
        };
        info!(next = ?pause, "somebody has changed or deleted the report of this node; it is written again");
        self.last = Some((now, pause));
        self.differs_since = None;
    }
}

const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(15);
const SAY_AGAIN: Duration = Duration::from_mins(1);

/// Paces writes that fail: an API server that is down, or a kind that is gone, is one fact.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    /// When the next write may be tried, and the wait before it.
    next: Option<(Instant, Duration)>,
    said: Option<Instant>,
}

impl Backoff {
    pub(super) fn wait(&self, now: Instant) -> Duration {
        self.next.map_or(Duration::ZERO, |(at, _)| at.saturating_duration_since(now))
    }

    /// Notes what became of a write.
    pub(super) fn note(&mut self, result: Result<(), String>, now: Instant) {
        let Err(error) = result else {
            if self.next.is_some() {
                info!("the report of this node could be written again");
            }
            *self = Self::default();
            return;
        };
        let wait = self.next.map_or(FIRST_WAIT, |(_, wait)| (wait * 2).min(LONGEST_WAIT));
        self.next = Some((now + wait, wait));
        if self.said.is_none_or(|said| now.saturating_duration_since(said) >= SAY_AGAIN) {
            warn!(error, "the report of this node could not be written; it is tried again");
            self.said = Some(now);
        } else {
            debug!(error, "the report of this node could not be written");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_change_is_repaired_within_seconds_and_one_that_passes_is_not() {
        let (mut repairs, now) = (Repairs::default(), Instant::now());
        assert_eq!(repairs.due(false, now), None);
        assert_eq!(repairs.due(true, now), Some(SECOND), "it may be the past");
        assert_eq!(repairs.due(false, now + SECOND / 2), None, "it was");
        assert_eq!(repairs.due(true, now + SECOND), Some(SECOND));
        assert_eq!(repairs.due(true, now + 2 * SECOND), Some(Duration::ZERO));
    }

    #[test]
    fn somebody_who_keeps_changing_it_is_not_fought() {
        let (mut repairs, start) = (Repairs::default(), Instant::now());
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
        let (mut backoff, now) = (Backoff::default(), Instant::now());
        assert_eq!(backoff.wait(now), Duration::ZERO);
        for seconds in [1, 2, 4, 8, 15, 15] {
            backoff.note(Err("gone".to_owned()), now);
            assert_eq!(backoff.wait(now), Duration::from_secs(seconds));
        }
        backoff.note(Ok(()), now);
        assert_eq!(backoff.wait(now), Duration::ZERO);
    }
}
