//! What kube-proxy has read of the node's view: which reads belong together, and when it has seen all of the current
//! one. Pure.
//!
//! Each change of the view begins a new epoch. A read that began in an earlier one must not go on: what left the view in between
//! would never be taken back. The API has an answer for such a read, 410, at which every client lists anew; so the agent gives it
//! to a watch that goes on from an older list, to the next page of a list that an older epoch began, and, because it
//! keeps nothing, to whatever was begun before it started.
//!
//! There is one kube-proxy on a node. A second client of the agent would make it list more often, and be told more than its
//! due only if it went on with a list of its own from before the view changed.

use crate::request::Read;

#[cfg(test)]
mod tests;

/// Counts the views since the agent started.
pub(crate) type Epoch = u64;

/// What may become of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    Forward,
    /// Answered with 410, so that the client lists anew.
    Expired,
}

/// The reads of Services so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Session {
    /// The epoch in which the current list began.
    began: Option<Epoch>,
    /// The last epoch of which a list was sent to its end.
    listed: Option<Epoch>,
    /// The last epoch of which kube-proxy has everything.
    synced: Option<Epoch>,
}

impl Session {
    /// Whether a read may begin or go on in the epoch `now`.
    pub(crate) fn admit(&mut self, read: Read, now: Epoch) -> Admission {
        match read {
            Read::List | Read::WatchFromStart => {
                self.began = Some(now);
                Admission::Forward
            }
            Read::NextPage if self.began == Some(now) => Admission::Forward,
            Read::WatchFromVersion if self.listed == Some(now) || self.synced == Some(now) => {
                // It watches from where it listed, so it has the list.
                self.synced = Some(now);
                Admission::Forward
            }
            Read::NextPage | Read::WatchFromVersion => Admission::Expired,
        }
    }

    /// A list, or a page of it, was sent to its end. A slow one of an earlier epoch undoes nothing.
    pub(crate) fn list_sent(&mut self, epoch: Epoch) {
        self.listed = self.listed.max(Some(epoch));
    }

    /// The bookmark that ends the initial events was sent.
    pub(crate) fn initial_events_sent(&mut self, epoch: Epoch) {
        self.synced = self.synced.max(Some(epoch));
    }

    /// Whether kube-proxy has everything of this epoch.
    pub(crate) fn has(&self, epoch: Epoch) -> bool {
        self.synced == Some(epoch)
    }
}
