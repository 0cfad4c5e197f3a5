//! The clients that read Services through the agent, and what of it counts as kube-proxy's. Pure.
//!
//! One connection is one client: each has a [`Session`] of its own, so that nobody goes on from what another has listed. A client that
//! comes over a new connection lists anew.
//!
//! There is one kube-proxy on a node, and the operator acts on what it has. A second client may have its credentials: somebody who looks
//! around with `kubectl` in its container. By its name, which Go's clients send as the first word of their User-Agent, kube-proxy is told
//! from others; where no client has that name, all count. A view counts as read when
//!
//! - no open client that counts and watches is known to have an older one, and
//! - one of them has it, or the last one that left had it: its rules are in the kernel still.
//!
//! Two clients that both call themselves kube-proxy are told apart while both are connected. Of one that is not, the other is taken for it.

use std::collections::BTreeMap;
use std::time::SystemTime;

use crate::filter::request::Read;
use crate::filter::session::{Admission, Epoch, Had, Session};

#[cfg(test)]
mod tests;

/// A connection of the agent's, in the order of their beginning.
pub(crate) type ConnectionId = u64;

/// What a client calls itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Program {
    KubeProxy,
    Other,
}

impl Program {
    /// By the header User-Agent, of which Go's clients make the program's name the first word.
    pub(crate) fn named(user_agent: Option<&str>) -> Self {
        let product = user_agent.and_then(|text| text.split('/').next());
        if product.is_some_and(|name| name.starts_with("kube-proxy")) { Self::KubeProxy } else { Self::Other }
    }
}

/// Who reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Client {
    pub(crate) program: Program,
    pub(crate) connection: ConnectionId,
}

/// What of all this is kube-proxy's, in one epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Since when it has everything of the epoch.
    pub(crate) had_since: Option<SystemTime>,
    /// Its open watches of Services.
    pub(crate) watches: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Reader {
    session: Session,
    watches: u32,
    /// Whether it has ever watched. One that only lists keeps nothing up to date.
    follows: bool,
}

/// All clients that read Services, and what those had that have left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Readers {
    open: BTreeMap<Client, Reader>,
    /// Of each program, what the last client that left had.
    left: BTreeMap<Program, Had>,
    kube_proxy_came: bool,
}

impl Readers {
    /// Whether a read of the client's may begin or go on in the epoch `now`.
    pub(crate) fn admit(&mut self, client: Client, read: Read, now: Epoch) -> Admission {
        self.kube_proxy_came |= client.program == Program::KubeProxy;
        let reader = self.open.entry(client).or_default();
        let admission = reader.session.admit(read, now);
        let watch = matches!(read, Read::WatchFromStart | Read::WatchFromVersion);
        reader.follows |= watch && admission == Admission::Forward;
        admission
    }

    /// A list, or a page of it, was sent to its end.
    pub(crate) fn list_sent(&mut self, client: Client, sent: Had) {
        self.open.entry(client).or_default().session.list_sent(sent);
    }

    /// The bookmark that ends the initial events was sent.
    pub(crate) fn initial_events_sent(&mut self, client: Client, sent: Had) {
        self.open.entry(client).or_default().session.initial_events_sent(sent);
    }

    pub(crate) fn watch_opened(&mut self, client: Client) {
        self.open.entry(client).or_default().watches += 1;
    }

    pub(crate) fn watch_closed(&mut self, client: Client) {
        if let Some(reader) = self.open.get_mut(&client) {
            reader.watches = reader.watches.saturating_sub(1);
        }
    }

    /// The connection has ended.
    pub(crate) fn left(&mut self, connection: ConnectionId) {
        for program in [Program::KubeProxy, Program::Other] {
            let reader = self.open.remove(&Client { program, connection });
            if let Some(had) =
                reader.filter(|reader| reader.follows).and_then(|reader| reader.session.synced())
            {
                self.left.insert(program, had);
            }
        }
    }

    /// What kube-proxy has of the epoch.
    pub(crate) fn reading(&self, epoch: Epoch) -> Reading {
        let counts = if self.kube_proxy_came { Program::KubeProxy } else { Program::Other };
        let counting = self.open.iter().filter(|(client, _)| client.program == counts);
        let watches = counting.map(|(_, reader)| reader.watches).sum();
        Reading { had_since: self.had_since(counts, epoch), watches }
    }

    fn had_since(&self, counts: Program, epoch: Epoch) -> Option<SystemTime> {
        let left = self.left.get(&counts).filter(|had| had.epoch == epoch);
        let followers =
            self.open.iter().filter(|(client, reader)| client.program == counts && reader.follows);
        let had: Option<Vec<Option<Had>>> = followers
            .map(|(_, reader)| match reader.session.synced() {
                Some(had) if had.epoch == epoch => Some(Some(had)),
                // It is known to work with another view.
                Some(_) => None,
                // It has just come; the rules are those that the last one has left.
                None => left.map(|_| None),
            })
            .collect();
        had?.into_iter().flatten().chain(left.copied()).map(|had| had.since).max()
    }
}
