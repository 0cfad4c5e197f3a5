//! What becomes of the authorities, and when. Pure: the time and new authorities come from outside.
//!
//! | found | what is done |
//! |---|---|
//! | no authority, or one that has ended or begins in the future | `Begin`: one is made, and signs at once |
//! | one that is past two thirds of its life | `Prepare`: the next one is made; it is trusted, and does not sign yet |
//! | a next one, `overlap` after it was stored | `Promote`: it signs; the one before stays trusted |
//! | one that signed before, `overlap` after that | `Forget`: it is no longer trusted |
//! | times that are missing, or far ahead | `Date`: they count from now |

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use thiserror::Error;

use super::authority::Authority;
use super::lifespan::SKEW;
use super::trust::Trust;

/// How long certificates live, and how long old and new ones are there side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lifetimes {
    pub(crate) authority: Duration,
    pub(crate) leaf: Duration,
    pub(crate) overlap: Duration,
}

/// Lifetimes that do not fit together.
#[derive(Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum LifetimesError {
    #[error(
        "--overlap {overlap:?} is more than a sixth of --ca-lifetime {authority:?}, whose last third has to hold two of them: choose \
         an overlap of at most {:?}, or an authority that lives for at least {:?}", *authority / 6, *overlap * 6
    )]
    Overlap { overlap: Duration, authority: Duration },
    #[error("--overlap {}s leaves API servers no time to see a new bundle: choose some seconds at least", .0.as_secs_f64())]
    NoOverlap(Duration),
    #[error(
        "--leaf-lifetime {leaf:?} is longer than --ca-lifetime {authority:?}, and no certificate outlives its authority: choose \
         at most {authority:?}"
    )]
    Leaf { leaf: Duration, authority: Duration },
    #[error("--leaf-lifetime {0:?} is too short to be renewed in time: choose 3s at least")]
    ShortLeaf(Duration),
}

/// Shorter ones are over before they are in use.
const SHORTEST_LEAF: Duration = Duration::from_secs(3);
/// A write takes a moment to be seen, however small the cluster is.
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

/// The authorities of all replicas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Authorities {
    /// Signs.
    pub(crate) current: Option<Authority>,
    /// Will sign.
    pub(crate) next: Option<Since<Authority>>,
    /// Has signed before the current one did.
    pub(crate) previous: Option<Since<CertificateDer<'static>>>,
}

/// Something that is as it is since some time, if that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Since<T> {
    pub(crate) what: T,
    pub(crate) since: Option<Timestamp>,
}

impl<T> Since<T> {
    /// The time, unless it is unknown or cannot be true.
    fn plausible(&self, now: Timestamp) -> Option<Timestamp> {
        self.since.filter(|since| *since <= now + SKEW)
    }

    fn dated(self, now: Timestamp) -> Self {
        let since = self.plausible(now).or(Some(now));
        Self { since, ..self }
    }
}

/// What is done with the authorities.
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
    // When both are due, what is over goes first: there is room for one previous authority.
    forget.filter(|forget| forget.0 <= renew.0).unwrap_or(renew)
}

impl Authorities {
    /// The authorities after a step that is taken now.
    pub(crate) fn after<E>(
        self,
        step: Step,
        now: Timestamp,
        make: impl FnOnce() -> Result<Authority, E>,
    ) -> Result<Self, E> {
        let retire = |current: Option<Authority>| {
            current.map(|current| Since { what: current.certificate, since: Some(now) })
        };
        Ok(match step {
            Step::Begin => {
                Self { current: Some(make()?), next: None, previous: retire(self.current).or(self.previous) }
            }
            Step::Prepare => Self { next: Some(Since { what: make()?, since: Some(now) }), ..self },
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

    /// What API servers are to trust.
    pub(crate) fn trust(&self) -> Trust {
        let current = self.current.iter().map(|current| &current.certificate);
        let next = self.next.iter().map(|next| &next.what.certificate);
        let previous = self.previous.iter().map(|previous| &previous.what);
        current.chain(next).chain(previous).cloned().collect()
    }
}

#[cfg(test)]
mod tests;
