//! What one client has read of the node's view: which of its reads belong together, and when it has seen all of the current
//! one. Pure.
//!
//! Each change of the view begins a new epoch. A read that began in an earlier one must not go on: what left the view in between
//! would never be taken back. The API has an answer for such a read, 410, at which every client lists anew; so the agent gives it
//! to a watch that goes on from an older list, to the next page of a list that an older epoch began, and, because it
//! keeps nothing, to every read that was begun on another connection or before the agent started.

use std::time::SystemTime;

use crate::filter::request::Read;

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

/// Everything of an epoch, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Had {
    pub(crate) epoch: Epoch,
    pub(crate) since: SystemTime,
}

/// The reads of Services of one client so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Session {
    /// The epoch in which the current list began.
    began: Option<Epoch>,
    /// The last epoch of which a list was sent to its end.
    listed: Option<Had>,
    /// The last epoch of which the client has everything.
    synced: Option<Had>,
}

impl Session {
    /// Whether a read may begin or go on in the epoch `now`.
    pub(crate) fn admit(&mut self, read: Read, now: Epoch) -> Admission {
        let of_now = |had: &Had| had.epoch == now;
        match read {
            Read::List | Read::WatchFromStart => {
                self.began = Some(now);
                Admission::Forward
            }
            Read::NextPage if self.began == Some(now) => Admission::Forward,
            Read::WatchFromVersion => match self.synced.filter(of_now).or(self.listed.filter(of_now)) {
                // It watches from where it listed, so it has the list.
                Some(had) => {
                    self.synced = Some(had);
                    Admission::Forward
                }
                None => Admission::Expired,
            },
            Read::NextPage => Admission::Expired,
        }
    }

    /// A list, or a page of it, was sent to its end. A slow one of an earlier epoch undoes nothing.
    pub(crate) fn list_sent(&mut self, sent: Had) {
        later(&mut self.listed, sent);
    }

    /// The bookmark that ends the initial events was sent.
    pub(crate) fn initial_events_sent(&mut self, sent: Had) {
        later(&mut self.synced, sent);
    }

    /// The last epoch of which the client has everything.
    pub(crate) fn synced(&self) -> Option<Had> {
        self.synced
    }
}

fn later(had: &mut Option<Had>, sent: Had) {
    if had.is_none_or(|had| had.epoch <= sent.epoch) {
        *had = Some(sent);
    }
}
