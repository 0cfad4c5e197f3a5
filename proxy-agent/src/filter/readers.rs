//! The clients that read Services through the agent, and which of their reads count as
//! kube-proxy's. Pure.
//!
//! Each connection is one client with its own [`Session`], so that no client resumes from the list
//! of another. A client that reconnects lists again.
//!
//! A node has one kube-proxy, and the operator acts on the view that kube-proxy has. A second
//! client may hold its credentials: an administrator who runs `kubectl` in its container. The
//! agent recognizes kube-proxy by the first word of the User-Agent, which Go clients set to the
//! program's name. If no client has that name, all clients count. A view counts as read if
//!
//! - no connected client that counts and watches is known to have an older view, and
//! - one of them has the view, or the last one that disconnected had it: its rules are still in
//!   the kernel.
//!
//! The agent tells two clients that both call themselves kube-proxy apart while both are
//! connected. If one of them is not, the agent takes the other for kube-proxy.

use std::collections::BTreeMap;
use std::time::SystemTime;

use super::request::ServiceRead;
use super::session::{Admission, Delivery, Session};
use crate::node::view::Epoch;

#[cfg(test)]
mod tests;

/// Numbers the connections in the order in which they were opened.
pub(crate) type ConnectionId = u64;

/// The program that a client claims to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum UserAgent {
    KubeProxy,
    Other,
}

impl UserAgent {
    /// Parses the header User-Agent. Go clients put the program's name first.
    pub(crate) fn parse(header: Option<&str>) -> Self {
        let product = header.and_then(|text| text.split('/').next());
        if product.is_some_and(|name| name.starts_with("kube-proxy")) { Self::KubeProxy } else { Self::Other }
    }
}

/// Identifies a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClientId {
    pub(crate) user_agent: UserAgent,
    pub(crate) connection: ConnectionId,
}

/// How much of one epoch kube-proxy has read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct KubeProxySync {
    /// When kube-proxy had received everything of the epoch.
    pub(crate) synced_at: Option<SystemTime>,
    /// Its open watches of Services.
    pub(crate) open_watches: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Reader {
    session: Session,
    open_watches: u32,
    /// Whether the client has ever watched. A client that only lists keeps nothing up to date.
    has_watched: bool,
}

/// All clients that read Services, connected or not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Readers {
    connected: BTreeMap<ClientId, Reader>,
    /// The view of the last client that disconnected, by program.
    disconnected: BTreeMap<UserAgent, Delivery>,
    kube_proxy_seen: bool,
}

impl Readers {
    /// Decides whether a read of the client may begin or continue in the epoch `now`.
    pub(crate) fn admit(&mut self, client: ClientId, read: ServiceRead, now: Epoch) -> Admission {
        self.kube_proxy_seen |= client.user_agent == UserAgent::KubeProxy;
        let reader = self.connected.entry(client).or_default();
        let admission = reader.session.admit(read, now);
        let watch = matches!(read, ServiceRead::WatchFromStart | ServiceRead::WatchFromVersion);
        reader.has_watched |= watch && admission == Admission::Forward;
        admission
    }

    /// Records that a list, or a page of one, was sent completely.
    pub(crate) fn list_sent(&mut self, client: ClientId, sent: Delivery) {
        self.connected.entry(client).or_default().session.list_sent(sent);
    }

    /// Records that the bookmark that ends the initial events was sent.
    pub(crate) fn initial_events_sent(&mut self, client: ClientId, sent: Delivery) {
        self.connected.entry(client).or_default().session.initial_events_sent(sent);
    }

    pub(crate) fn watch_opened(&mut self, client: ClientId) {
        self.connected.entry(client).or_default().open_watches += 1;
    }

    pub(crate) fn watch_closed(&mut self, client: ClientId) {
        if let Some(reader) = self.connected.get_mut(&client) {
            reader.open_watches = reader.open_watches.saturating_sub(1);
        }
    }

    pub(crate) fn connection_closed(&mut self, connection: ConnectionId) {
        for user_agent in [UserAgent::KubeProxy, UserAgent::Other] {
            let reader = self.connected.remove(&ClientId { user_agent, connection });
            let watcher = reader.filter(|reader| reader.has_watched);
            if let Some(delivery) = watcher.and_then(|reader| reader.session.synced()) {
                self.disconnected.insert(user_agent, delivery);
            }
        }
    }

    /// Says how much of the epoch kube-proxy has read.
    pub(crate) fn kube_proxy(&self, epoch: Epoch) -> KubeProxySync {
        let counts = if self.kube_proxy_seen { UserAgent::KubeProxy } else { UserAgent::Other };
        let counting = self.connected.iter().filter(|(client, _)| client.user_agent == counts);
        let open_watches = counting.map(|(_, reader)| reader.open_watches).sum();
        KubeProxySync { synced_at: self.synced_at(counts, epoch), open_watches }
    }

    fn synced_at(&self, counts: UserAgent, epoch: Epoch) -> Option<SystemTime> {
        let disconnected = self.disconnected.get(&counts).filter(|delivery| delivery.epoch == epoch);
        let watchers = self
            .connected
            .iter()
            .filter(|(client, reader)| client.user_agent == counts && reader.has_watched);
        let deliveries: Option<Vec<Option<Delivery>>> = watchers
            .map(|(_, reader)| match reader.session.synced() {
                Some(delivery) if delivery.epoch == epoch => Some(Some(delivery)),
                // This client is known to work with another view.
                Some(_) => None,
                // It has just connected; the rules are still those of its predecessor.
                None => disconnected.map(|_| None),
            })
            .collect();
        deliveries?.into_iter().flatten().chain(disconnected.copied()).map(|delivery| delivery.at).max()
    }
}
