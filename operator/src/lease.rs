//! Leader election through a Lease. This module decides, without a clock or a connection; `keeper`
//! executes.
//!
//! Clocks of different machines are never compared. A holder counts as gone when its Lease has not
//! changed, as observed locally, for the duration that the Lease states. A holder that cannot renew
//! stops acting before that time is up.

mod keeper;

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;

pub(crate) use self::keeper::{Keeper, Leadership};

#[cfg(test)]
mod tests;

/// Durations of the election. Each is shorter than the one before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// Other replicas take the Lease after this time without a change.
    pub(crate) lease: Duration,
    /// The holder stops acting after this time without a renewal.
    pub(crate) give_up: Duration,
    /// Interval between renewals.
    pub(crate) renew: Duration,
}

/// The local knowledge of the Lease.
#[derive(Clone, Debug)]
enum Known {
    /// Unknown; it has to be read.
    Nothing,
    /// It does not exist.
    Absent,
    /// The Lease, and when this version was first observed locally.
    Record(Box<Lease>, Instant),
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Wait until this time or the next watch event.
    Wait(Instant),
    Read,
    Create,
    /// Acquire a Lease that has no holder or has expired.
    Take,
    Renew,
}

/// The election from the perspective of one replica.
#[derive(Debug)]
pub(crate) struct Election {
    identity: String,
    timing: Timing,
    known: Known,
    /// When this replica last wrote the Lease as its holder, measured before the request was sent.
    renewed: Option<Instant>,
    /// Earliest time of the next request, after a failure.
    not_before: Option<Instant>,
}

impl Election {
    pub(crate) fn new(identity: String, timing: Timing) -> Self {
        Self { identity, timing, known: Known::Nothing, renewed: None, not_before: None }
    }

    /// The step to take now.
    pub(crate) fn decide(&self, now: Instant) -> Step {
        if let Some(time) = self.not_before.filter(|time| *time > now) {
            return Step::Wait(time);
        }
        let (lease, since) = match &self.known {
            Known::Nothing => return Step::Read,
            Known::Absent => return Step::Create,
            Known::Record(lease, since) => (lease, *since),
        };
        let wait_or = |time: Instant, step: Step| if time > now { Step::Wait(time) } else { step };
        match holder(lease) {
            None => Step::Take,
            // If this process has not renewed it, a previous process with the same identity held
            // it.
            Some(holder) if holder == self.identity => {
                self.renewed.map_or(Step::Renew, |renewed| wait_or(renewed + self.timing.renew, Step::Renew))
            }
            Some(_) => wait_or(since + duration(lease), Step::Take),
        }
    }

    /// Until when this replica may act, if it leads.
    pub(crate) fn leads_until(&self) -> Option<Instant> {
        Some(self.renewed? + self.timing.give_up)
    }

    /// The last known holder.
    pub(crate) fn holder(&self) -> Option<&str> {
        match &self.known {
            Known::Record(lease, _) => holder(lease),
            Known::Nothing | Known::Absent => None,
        }
    }

    /// Records the Lease as observed, or its absence.
    pub(crate) fn observe(&mut self, lease: Option<Lease>, now: Instant) {
        let Some(lease) = lease else {
            self.known = Known::Absent;
            self.renewed = None;
            return;
        };
        let same = matches!(&self.known, Known::Record(known, _) if version(known) == version(&lease));
        if same || self.knows_better(&lease) {
            return;
        }
        if holder(&lease) != Some(&self.identity) {
            self.renewed = None;
        }
        self.known = Known::Record(Box::new(lease), now);
    }

    /// Whether `told` is older than the known version: a watch may deliver events from before our
    /// own last write.
    pub(crate) fn knows_better(&self, told: &Lease) -> bool {
        let Known::Record(known, _) = &self.known else { return false };
        version(told).zip(version(known)).is_some_and(|(told, known)| told < known)
    }

    /// Records a successful write by this replica; its request started at `began`.
    pub(crate) fn wrote(&mut self, lease: Lease, began: Instant) {
        self.renewed = (holder(&lease) == Some(&self.identity)).then_some(began);
        self.known = Known::Record(Box::new(lease), began);
        self.not_before = None;
    }

    /// Records a lost race: another replica changed or deleted the Lease, so it has to be read
    /// again.
    pub(crate) fn lost_the_race(&mut self) {
        self.known = Known::Nothing;
    }

    /// Records a failed request; the next one is due at `again`.
    pub(crate) fn failed(&mut self, again: Instant) {
        self.not_before = Some(again);
    }

    /// The Lease with this replica as its holder, based on the last known version.
    pub(crate) fn held(&self, name: &str, now: Timestamp) -> Lease {
        let mut lease = self.known_or_new(name);
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_ref() != Some(&self.identity) {
            let before = spec.lease_transitions;
            spec.lease_transitions = Some(before.map_or(0, |count| count.saturating_add(1)));
            spec.acquire_time = Some(MicroTime(now));
        }
        spec.holder_identity = Some(self.identity.clone());
        spec.lease_duration_seconds = i32::try_from(self.timing.lease.as_secs()).ok();
        spec.renew_time = Some(MicroTime(now));
        lease
    }

    /// The Lease without a holder, if this replica holds it.
    pub(crate) fn released(&self, now: Timestamp) -> Option<Lease> {
        let Known::Record(lease, _) = &self.known else { return None };
        if holder(lease) != Some(&self.identity) {
            return None;
        }
        let mut lease = lease.clone();
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = None;
        spec.renew_time = Some(MicroTime(now));
        Some(*lease)
    }

    fn known_or_new(&self, name: &str) -> Lease {
        match &self.known {
            Known::Record(lease, _) => (**lease).clone(),
            Known::Nothing | Known::Absent => Lease {
                metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
                spec: Some(LeaseSpec::default()),
            },
        }
    }
}

fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

fn version(lease: &Lease) -> Option<u64> {
    lease.metadata.resource_version.as_deref()?.parse().ok()
}

fn duration(lease: &Lease) -> Duration {
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds).unwrap_or_default();
    Duration::from_secs(seconds.try_into().unwrap_or_default())
}
