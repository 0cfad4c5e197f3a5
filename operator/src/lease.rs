//! Who acts, of several replicas: the one that holds the Lease. What to do about it is decided here, without clock or
//! connection; `keeper` does it.
//!
//! Clocks of different machines are not compared. A holder counts as gone when its Lease has not changed, as seen from here,
//! for as long as it says; and who holds it stops acting some time before others may think so.

mod keeper;

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;

pub(crate) use self::keeper::{Keeper, Leadership};

#[cfg(test)]
mod tests;

/// How long everything lasts. Each is less than the one before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// After this time without a change others take the Lease.
    pub(crate) lease: Duration,
    /// After this time without a renewal the holder stops acting.
    pub(crate) give_up: Duration,
    /// How often it is renewed.
    pub(crate) renew: Duration,
}

/// What is known of the Lease.
#[derive(Clone, Debug)]
enum Known {
    /// Nothing: it has to be read.
    Nothing,
    /// That there is none.
    Absent,
    /// That it is so, since this was first seen here.
    Record(Box<Lease>, Instant),
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing before that time, unless there is news.
    Wait(Instant),
    Read,
    Create,
    /// Take it, because nobody holds it any more.
    Take,
    Renew,
}

/// One replica's part in the election.
#[derive(Debug)]
pub(crate) struct Election {
    identity: String,
    timing: Timing,
    known: Known,
    /// When this replica last wrote the Lease as its holder, counted from before the request.
    renewed: Option<Instant>,
    /// After a failure.
    not_before: Option<Instant>,
}

impl Election {
    pub(crate) fn new(identity: String, timing: Timing) -> Self {
        Self { identity, timing, known: Known::Nothing, renewed: None, not_before: None }
    }

    /// What to do now.
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
            // Not renewed by this process: its former life had it, and must have ended.
            Some(holder) if holder == self.identity => {
                self.renewed.map_or(Step::Renew, |renewed| wait_or(renewed + self.timing.renew, Step::Renew))
            }
            Some(_) => wait_or(since + duration(lease), Step::Take),
        }
    }

    /// Until when this replica may act, if it may.
    pub(crate) fn leads_until(&self) -> Option<Instant> {
        Some(self.renewed? + self.timing.give_up)
    }

    /// Who holds it, as far as is known.
    pub(crate) fn holder(&self) -> Option<&str> {
        match &self.known {
            Known::Record(lease, _) => holder(lease),
            Known::Nothing | Known::Absent => None,
        }
    }

    /// The Lease was seen, or was seen not to be there.
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

    /// Whether that is older than what is known: a watch may still tell what was before our own last write.
    pub(crate) fn knows_better(&self, told: &Lease) -> bool {
        let Known::Record(known, _) = &self.known else { return false };
        version(told).zip(version(known)).is_some_and(|(told, known)| told < known)
    }

    /// This replica wrote the Lease, with a request that began at `began`.
    pub(crate) fn wrote(&mut self, lease: Lease, began: Instant) {
        self.renewed = (holder(&lease) == Some(&self.identity)).then_some(began);
        self.known = Known::Record(Box::new(lease), began);
        self.not_before = None;
    }

    /// Another one was faster, or the Lease is gone: it has to be read.
    pub(crate) fn lost_the_race(&mut self) {
        self.known = Known::Nothing;
    }

    /// A request failed: the next one comes at `again`.
    pub(crate) fn failed(&mut self, again: Instant) {
        self.not_before = Some(again);
    }

    /// The Lease with this replica as its holder, to be written over what is known.
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
