//! The rotation of certificate authorities (CAs): which step is due, and when. Pure: the time and
//! new CAs are arguments.
//!
//! | found | step |
//! |---|---|
//! | no CA, or one that has expired or is not valid yet | `Begin`: create one; it signs immediately |
//! | a CA past two thirds of its lifetime | `Prepare`: create the next one; it is trusted but does not sign yet |
//! | a next CA, `overlap` after it was stored | `Promote`: it signs; the previous one stays trusted |
//! | a previous CA, `overlap` after `Promote` | `Forget`: it is no longer trusted |
//! | times that are missing or in the future | `Date`: count from now |

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use thiserror::Error;

use super::authority::Authority;
use super::lifespan::SKEW;
use super::trust::Trust;

/// How long certificates are valid, and how long old and new CAs are both trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lifetimes {
    pub(crate) authority: Duration,
    pub(crate) leaf: Duration,
    pub(crate) overlap: Duration,
}

/// Lifetimes that contradict each other.
#[derive(Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum LifetimesError {
    #[error(
        "--overlap {overlap:?} is more than a sixth of --ca-lifetime {authority:?}, whose last third must contain two overlaps: choose \
         an overlap of at most {:?}, or a CA lifetime of at least {:?}", *authority / 6, *overlap * 6
    )]
    Overlap { overlap: Duration, authority: Duration },
    #[error("--overlap {}s leaves API servers no time to see a new bundle: choose at least a few seconds", .0.as_secs_f64())]
    NoOverlap(Duration),
    #[error(
        "--leaf-lifetime {leaf:?} is longer than --ca-lifetime {authority:?}, and no certificate outlives its CA: choose \
         at most {authority:?}"
    )]
    Leaf { leaf: Duration, authority: Duration },
    #[error("--leaf-lifetime {0:?} is too short to be renewed in time: choose at least 3s")]
    ShortLeaf(Duration),
}

/// A shorter one would expire before it is used.
const SHORTEST_LEAF: Duration = Duration::from_secs(3);
/// A write takes a moment to reach every replica, even in a small cluster.
const SHORTEST_OVERLAP: Duration = Duration::from_secs(1);

impl Lifetimes {
    pub(crate) fn new(
        authority: Duration,
        leaf: Duration,
        overlap: Duration,
    ) -> Result<Self, LifetimesError> {
        if overlap < SHORTEST_OVERLAP {
            return Err(LifetimesError::NoOverlap(overlap));
        }
        if overlap > authority / 6 {
            return Err(LifetimesError::Overlap { overlap, authority });
        }
        if leaf > authority {
            return Err(LifetimesError::Leaf { leaf, authority });
        }
        if leaf < SHORTEST_LEAF {
            return Err(LifetimesError::ShortLeaf(leaf));
        }
        Ok(Self { authority, leaf, overlap })
    }
}

/// The CAs that all replicas share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Authorities {
    /// Signs certificates now.
    pub(crate) current: Option<Authority>,
    /// Signs after the next `Promote`.
    pub(crate) next: Option<Dated<Authority>>,
    /// Signed before the current one.
    pub(crate) previous: Option<Dated<CertificateDer<'static>>>,
}

/// A value and when it was stored, if known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dated<T> {
    pub(crate) what: T,
    pub(crate) since: Option<Timestamp>,
}

impl<T> Dated<T> {
    /// The time, unless it is unknown or lies in the future.
    fn plausible(&self, now: Timestamp) -> Option<Timestamp> {
        self.since.filter(|since| *since <= now + SKEW)
    }

    fn dated(self, now: Timestamp) -> Self {
        let since = self.plausible(now).or(Some(now));
        Self { since, ..self }
    }
}

/// A step of the rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Begin,
    Prepare,
    Promote,
    Forget,
    Date,
}

/// The next step, and when it is due.
pub(crate) fn due(now: Timestamp, held: &Authorities, lifetimes: &Lifetimes) -> (Timestamp, Step) {
    let next = held.next.as_ref().filter(|next| next.what.lifespan.holds(now));
    let Some(current) = held.current.as_ref().filter(|current| current.lifespan.holds(now)) else {
        return (now, if next.is_some() { Step::Promote } else { Step::Begin });
    };
    let overlap = lifetimes.overlap;
    let forget = held.previous.as_ref().map(|previous| match previous.plausible(now) {
        Some(since) => (since + overlap, Step::Forget),
        None => (now, Step::Date),
    });
    let renew = match next.map(|next| next.plausible(now)) {
        Some(Some(since)) => (since + overlap, Step::Promote),
        Some(None) => (now, Step::Date),
        None => (current.lifespan.two_thirds(), Step::Prepare),
    };
    // If both are due, `Forget` comes first: there is room for only one previous CA.
    forget.filter(|forget| forget.0 <= renew.0).unwrap_or(renew)
}

impl Authorities {
    /// The CAs after a step taken now.
    pub(crate) fn after<E>(
        self,
        step: Step,
        now: Timestamp,
        make: impl FnOnce() -> Result<Authority, E>,
    ) -> Result<Self, E> {
        let retire = |current: Option<Authority>| {
            current.map(|current| Dated { what: current.certificate, since: Some(now) })
        };
        Ok(match step {
            Step::Begin => {
                Self { current: Some(make()?), next: None, previous: retire(self.current).or(self.previous) }
            }
            Step::Prepare => Self { next: Some(Dated { what: make()?, since: Some(now) }), ..self },
            Step::Promote => Self {
                current: self.next.map(|next| next.what),
                next: None,
                previous: retire(self.current).or(self.previous),
            },
            Step::Forget => Self { previous: None, ..self },
            Step::Date => Self {
                next: self.next.map(|next| next.dated(now)),
                previous: self.previous.map(|previous| previous.dated(now)),
                ..self
            },
        })
    }

    /// The CA bundle that API servers need.
    pub(crate) fn trust(&self) -> Trust {
        let current = self.current.iter().map(|current| &current.certificate);
        let next = self.next.iter().map(|next| &next.what.certificate);
        let previous = self.previous.iter().map(|previous| &previous.what);
        current.chain(next).chain(previous).cloned().collect()
    }
}

#[cfg(test)]
mod tests;
