//! Exponential backoff: starts at one second, doubles, capped at 30 seconds.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

/// The number of consecutive failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Backoff(u32);

impl Backoff {
    /// Records a failure.
    pub(crate) fn fail(&mut self) {
        self.0 = self.0.saturating_add(1);
    }

    /// Whether any failure was recorded.
    pub(crate) fn has_failed(self) -> bool {
        self.0 > 0
    }

    /// The delay before the next attempt.
    pub(crate) fn delay(self) -> Duration {
        // From the sixth failure on, the cap applies anyway; this keeps the power from overflowing.
        let doublings = self.0.saturating_sub(1).min(5);
        (FIRST * 2u32.pow(doublings)).min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_half_a_minute_and_never_overflow() {
        let mut backoff = Backoff::default();
        assert!(!backoff.has_failed());
        let mut waits = Vec::new();
        for _ in 0..8 {
            backoff.fail();
            waits.push(backoff.delay().as_secs());
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30, 30]);
        assert_eq!(Backoff(u32::MAX).delay(), LONGEST);
    }
}
