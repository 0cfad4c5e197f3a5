//! The reads of Services of one client: which of them belong together, and when the client has
//! received the whole current view. Pure.
//!
//! Each change of the view begins a new epoch. A read that began in an earlier epoch must not
//! continue, because the client would never learn which Services left the view in between. The API
//! has an answer for such a read: 410, after which every client lists again. The agent gives it to
//! a watch that resumes from an older list and to the next page of a list that began in an older
//! epoch. The agent persists nothing, so it also gives it to every read that began on another
//! connection or before the agent started.

use std::time::SystemTime;

use super::request::ServiceRead;
use crate::node::view::Epoch;

#[cfg(test)]
mod tests;

/// Whether a read is forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    Forward,
    /// The agent answers 410, so that the client lists again.
    Expired,
}

/// A delivery of all Services of an epoch, and the time when it was complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub(crate) epoch: Epoch,
    pub(crate) at: SystemTime,
}

/// The reads of Services of one client so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Session {
    /// The epoch in which the current list began.
    list_began: Option<Epoch>,
    /// The last list that was sent completely.
    listed: Option<Delivery>,
    /// The last epoch of which the client has everything.
    synced: Option<Delivery>,
}

impl Session {
    /// Decides whether a read may begin or continue in the epoch `now`.
    pub(crate) fn admit(&mut self, read: ServiceRead, now: Epoch) -> Admission {
        let is_current = |delivery: &Delivery| delivery.epoch == now;
        match read {
            ServiceRead::List | ServiceRead::WatchFromStart => {
                self.list_began = Some(now);
                Admission::Forward
            }
            ServiceRead::NextPage if self.list_began == Some(now) => Admission::Forward,
            ServiceRead::WatchFromVersion => {
                match self.synced.filter(is_current).or(self.listed.filter(is_current)) {
                    // The client watches from the version of its list, so it has the list.
                    Some(delivery) => {
                        self.synced = Some(delivery);
                        Admission::Forward
                    }
                    None => Admission::Expired,
                }
            }
            ServiceRead::NextPage => Admission::Expired,
        }
    }

    /// Records that a list, or a page of one, was sent completely. A slow list of an earlier epoch
    /// does not undo a later one.
    pub(crate) fn list_sent(&mut self, sent: Delivery) {
        keep_latest(&mut self.listed, sent);
    }

    /// Records that the bookmark that ends the initial events was sent.
    pub(crate) fn initial_events_sent(&mut self, sent: Delivery) {
        keep_latest(&mut self.synced, sent);
    }

    /// Returns the last epoch of which the client has everything.
    pub(crate) fn synced(&self) -> Option<Delivery> {
        self.synced
    }
}

fn keep_latest(latest: &mut Option<Delivery>, sent: Delivery) {
    if latest.is_none_or(|latest| latest.epoch <= sent.epoch) {
        *latest = Some(sent);
    }
}
