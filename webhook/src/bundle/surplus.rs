//! Computes the next bundle from the current one. Pure.
//!
//! Replicas see a new CA at different times. If each wrote only the CAs it knows, they would
//! overwrite each other and remove CAs that others need. So a missing CA is added at once, and a
//! surplus CA is removed only after it has been surplus for `overlap`. A replica that still needs
//! it has added it back by then.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use rustls::pki_types::CertificateDer;

use crate::certs::Trust;

#[derive(Debug)]
pub(super) struct Surplus {
    overlap: Duration,
    /// The surplus certificates, and since when each has been surplus.
    since: Vec<(CertificateDer<'static>, Timestamp)>,
}

impl Surplus {
    pub(super) fn new(overlap: Duration) -> Self {
        Self { overlap, since: Vec::new() }
    }

    /// The bundle to write, if it differs from the present one.
    pub(super) fn bundle(&mut self, now: Timestamp, needed: &Trust, present: &Trust) -> Option<Trust> {
        if needed.is_empty() {
            return None;
        }
        let too_much = present.iter().filter(|each| !needed.contains(each)).cloned();
        self.since = too_much
            .map(|each| {
                let known = self.since.iter().find(|(other, _)| *other == each);
                let since = known.map_or(now, |(_, since)| *since);
                (each, since)
            })
            .collect();
        let stays = self.since.iter().filter(|(_, since)| now < *since + self.overlap);
        let bundle = needed.with(&stays.map(|(each, _)| each.clone()).collect());
        (bundle != *present).then_some(bundle)
    }

    /// How long until a surplus certificate is removed.
    pub(super) fn due(&self, now: Timestamp) -> Option<Duration> {
        let first = self.since.iter().map(|(_, since)| *since + self.overlap).min()?;
        Some(Duration::try_from(first.duration_since(now)).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certs::fixtures::{at, trust};

    fn surplus() -> Surplus {
        Surplus::new(Duration::from_secs(100))
    }

    #[test]
    fn what_is_missing_is_added_and_what_is_right_is_left_alone() {
        let mut surplus = surplus();
        assert_eq!(surplus.bundle(at(0), &trust(b"a"), &trust(b"")), Some(trust(b"a")));
        assert_eq!(surplus.bundle(at(0), &trust(b"ab"), &trust(b"ba")), None);
        assert_eq!(surplus.bundle(at(0), &trust(b""), &trust(b"")), None, "nothing is known yet");
        assert_eq!(surplus.bundle(at(0), &trust(b""), &trust(b"a")), None);
        assert_eq!(surplus.due(at(0)), None);
    }

    #[test]
    fn what_is_too_much_goes_after_the_overlap() {
        let mut surplus = surplus();
        assert_eq!(surplus.bundle(at(0), &trust(b"b"), &trust(b"a")), Some(trust(b"ab")));
        assert_eq!(surplus.bundle(at(10), &trust(b"b"), &trust(b"ab")), None);
        assert_eq!(surplus.due(at(10)), Some(Duration::from_secs(90)));
        assert_eq!(surplus.bundle(at(99), &trust(b"b"), &trust(b"ab")), None);
        assert_eq!(surplus.bundle(at(100), &trust(b"b"), &trust(b"ab")), Some(trust(b"b")));
    }

    #[test]
    fn what_was_needed_meanwhile_counts_anew() {
        let mut surplus = surplus();
        assert_eq!(surplus.bundle(at(0), &trust(b"b"), &trust(b"ab")), None);
        assert_eq!(surplus.bundle(at(50), &trust(b"ab"), &trust(b"ab")), None);
        assert_eq!(surplus.bundle(at(60), &trust(b"b"), &trust(b"ab")), None);
        assert_eq!(surplus.bundle(at(120), &trust(b"b"), &trust(b"ab")), None);
        assert_eq!(surplus.bundle(at(160), &trust(b"b"), &trust(b"ab")), Some(trust(b"b")));
    }

    #[test]
    fn replicas_that_know_different_things_settle_without_a_fight() {
        // One replica has seen B, the other has not.
        let (mut ahead, mut behind) = (surplus(), surplus());
        let mut present = trust(b"a");
        let mut writes = 0;
        for second in 0..90 {
            for (replica, needed) in [(&mut ahead, trust(b"ab")), (&mut behind, trust(b"a"))] {
                if let Some(bundle) = replica.bundle(at(second), &needed, &present) {
                    present = bundle;
                    writes += 1;
                }
            }
        }
        assert_eq!((present, writes), (trust(b"ab"), 1));
    }
}
