//! How long something has lasted, by the clock of the process that looks. Times that others have written are not compared with it: their
//! clocks may differ, and anybody can write an annotation. An operator that has just taken over waits anew.

use std::cell::RefCell;
use std::collections::BTreeMap;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::cluster::Key;

/// Something that is waited for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// A node is going over to a revision of the agent.
    Over {
        /// The node.
        node: String,
        /// The revision.
        revision: String,
    },
    /// A node is going back to the cluster's kube-proxy.
    Back {
        /// The node.
        node: String,
    },
    /// A node was sent back. One that keeps putting the label on itself goes after the others.
    SentBack {
        /// The node.
        node: String,
    },
    /// Images are being pulled on a node.
    Images {
        /// The node.
        node: String,
        /// Of this revision.
        revision: String,
    },
    /// The agent of a node is not ready.
    NotReady {
        /// The node.
        node: String,
    },
    /// A Service has an endpoint on an ingress node, or has none.
    Endpoints {
        /// The UID of the object.
        object: String,
        /// The Service.
        service: Key,
        /// Whether it has one.
        some: bool,
    },
    /// kube-proxy stays off nodes with an agent.
    KeptOff {
        /// Its DaemonSet.
        daemon_set: Key,
    },
    /// Services have to be put back whose objects are gone. One wait for all of them, or who keeps making new ones would never be waited
    /// for long enough.
    Orphans,
}

/// Since when each is waited for. What a plan does not ask about any more is forgotten.
pub type Waits = BTreeMap<Wait, Timestamp>;

/// The waits of one plan.
pub(crate) struct Clock<'a> {
    before: &'a Waits,
    asked: RefCell<Waits>,
    pub(crate) now: Timestamp,
}

impl<'a> Clock<'a> {
    pub(crate) fn new(before: &'a Waits, now: Timestamp) -> Self {
        Self { before, asked: RefCell::default(), now }
    }

    /// When a wait that may take that many seconds is over.
    pub(crate) fn end(&self, wait: Wait, seconds: u32) -> Timestamp {
        // A clock that was set back begins anew; and no sum can leave the range, because both are real times.
        let since = self.before.get(&wait).copied().filter(|since| *since <= self.now).unwrap_or(self.now);
        self.asked.borrow_mut().insert(wait, since);
        since.saturating_add(SignedDuration::from_secs(i64::from(seconds))).unwrap_or(Timestamp::MAX)
    }

    /// Whether it was asked about before.
    pub(crate) fn is_known(&self, wait: &Wait) -> bool {
        self.before.contains_key(wait)
    }

    /// Whether something that was asked about before had lasted that many seconds.
    pub(crate) fn has_lasted(&self, wait: &Wait, seconds: u32) -> bool {
        let lasted = self.before.get(wait).map(|since| self.now.duration_since(*since));
        lasted.is_some_and(|lasted| lasted >= SignedDuration::from_secs(i64::from(seconds)))
    }

    /// What was asked about.
    pub(crate) fn into_waits(self) -> Waits {
        self.asked.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap_or_default()
    }

    fn wait() -> Wait {
        Wait::NotReady { node: "n".to_owned() }
    }

    #[test]
    fn a_wait_counts_from_when_it_was_first_asked_about() {
        let none = Waits::new();
        let first = Clock::new(&none, at(100));
        assert_eq!(first.end(wait(), 30), at(130));
        let waits = first.into_waits();
        let later = Clock::new(&waits, at(120));
        assert_eq!(later.end(wait(), 30), at(130));
    }

    #[test]
    fn a_wait_that_is_not_asked_about_is_forgotten() {
        let waits = [(wait(), at(100))].into();
        let clock = Clock::new(&waits, at(120));
        assert!(clock.into_waits().is_empty());
    }

    #[test]
    fn a_clock_that_is_set_back_begins_anew() {
        let waits = [(wait(), at(100))].into();
        assert_eq!(Clock::new(&waits, at(50)).end(wait(), 30), at(80));
    }
}
