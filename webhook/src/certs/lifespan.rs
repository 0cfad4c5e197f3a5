//! The validity period of a certificate.

use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// Tolerated clock skew. Certificates are backdated by this much.
pub(crate) const SKEW: Duration = Duration::from_hours(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lifespan {
    pub(crate) begins: Timestamp,
    pub(crate) ends: Timestamp,
}

impl Lifespan {
    /// The validity of a certificate created now, rounded down to seconds like certificates are.
    pub(crate) fn starting(now: Timestamp, lifetime: Duration) -> Self {
        let now = seconds(now.as_second());
        Self { begins: now - SKEW, ends: now + lifetime }
    }

    pub(crate) fn from_seconds(begins: i64, ends: i64) -> Self {
        Self { begins: seconds(begins), ends: seconds(ends) }
    }

    pub(crate) fn holds(self, now: Timestamp) -> bool {
        self.begins <= now && now < self.ends
    }

    /// When two thirds of the lifetime are over, counted from creation; the time to renew.
    pub(crate) fn two_thirds(self) -> Timestamp {
        let lifetime =
            self.ends.duration_since(self.begins) - SignedDuration::try_from(SKEW).unwrap_or_default();
        self.ends - lifetime.max(SignedDuration::ZERO) / 3
    }
}

/// Saturating: the year 9999, which means no expiry, is beyond the maximum of `Timestamp`.
fn seconds(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap_or(if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_an_hour_early_and_two_thirds_count_from_when_it_was_made() {
        let now = Timestamp::new(1_800_000_000, 700_000_000).unwrap();
        let lifespan = Lifespan::starting(now, Duration::from_secs(90));
        assert_eq!(lifespan, Lifespan::from_seconds(1_800_000_000 - 3600, 1_800_000_090));
        assert_eq!(lifespan.two_thirds().as_second(), 1_800_000_060);
        for (second, holds) in [(-3601, false), (-3600, true), (89, true), (90, false)] {
            assert_eq!(lifespan.holds(seconds(1_800_000_000 + second)), holds, "{second}");
        }
    }

    #[test]
    fn the_strangest_certificates_have_a_lifespan() {
        // 99991231235959Z means no expiry.
        assert_eq!(Lifespan::from_seconds(0, 253_402_300_799).ends, Timestamp::MAX);
        // Shorter than the backdating.
        assert_eq!(Lifespan::from_seconds(0, 60).two_thirds(), seconds(60));
        // Ends before it begins.
        assert!(!Lifespan::from_seconds(60, 0).holds(seconds(30)));
    }
}
