//! Durations, measured by the local clock. Timestamps written by others are not used: their clocks
//! may differ, and anyone can write an annotation. A new leader starts all waits again.

use std::cell::RefCell;
use std::collections::BTreeMap;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::cluster::Key;

/// A condition whose duration is measured.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// A node is being handed over to a revision of the agent.
    Over {
        /// The node.
        node: String,
        /// The revision.
        revision: String,
    },
    /// A node is being handed back to the cluster's kube-proxy.
    Back {
        /// The node.
        node: String,
    },
    /// A node was sent back. Nodes that keep restoring the label are sent back after the others.
    SentBack {
        /// The node.
        node: String,
    },
    /// Images are being pulled on a node.
    Images {
        /// The node.
        node: String,
        /// The revision.
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
    /// kube-proxy's node affinity excludes nodes with an agent.
    KeptOff {
        /// Its DaemonSet.
        daemon_set: Key,
    },
    /// The agent of mode Beside is not ready on a node.
    Beside {
        /// The node.
        node: String,
    },
    /// kube-proxies serve a Service again that they skipped.
    GivenBack {
        /// The Service.
        service: Key,
    },
    /// The agents of mode Beside stop serving.
    Drain,
    /// Services whose object no longer exists have to be given back to kube-proxies.
    OrphansBeside,
    /// Services whose object no longer exists have to be restored. A single wait for all of them:
    /// otherwise a stream of new ones would extend the wait forever.
    Orphans,
}

/// The start of each wait. Waits that a plan does not ask about are dropped.
pub type Waits = BTreeMap<Wait, Timestamp>;

/// The waits during one plan.
pub(crate) struct Clock<'a> {
    before: &'a Waits,
    asked: RefCell<Waits>,
    pub(crate) now: Timestamp,
}

impl<'a> Clock<'a> {
    pub(crate) fn new(before: &'a Waits, now: Timestamp) -> Self {
        Self { before, asked: RefCell::default(), now }
    }

    /// When a wait of that many seconds ends. Starts the wait if it is new.
    pub(crate) fn end(&self, wait: Wait, seconds: u32) -> Timestamp {
        // If the clock was set back, the wait restarts. The sum cannot overflow for real
        // timestamps.
        let since = self.before.get(&wait).copied().filter(|since| *since <= self.now).unwrap_or(self.now);
        self.asked.borrow_mut().insert(wait, since);
        since.saturating_add(SignedDuration::from_secs(i64::from(seconds))).unwrap_or(Timestamp::MAX)
    }

    /// Whether the previous plan asked about it.
    pub(crate) fn is_known(&self, wait: &Wait) -> bool {
        self.before.contains_key(wait)
    }

    /// Whether a wait known from the previous plan has lasted that many seconds.
    pub(crate) fn has_lasted(&self, wait: &Wait, seconds: u32) -> bool {
        let lasted = self.before.get(wait).map(|since| self.now.duration_since(*since));
        lasted.is_some_and(|lasted| lasted >= SignedDuration::from_secs(i64::from(seconds)))
    }

    /// The waits that this plan asked about.
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
