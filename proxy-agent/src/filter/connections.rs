//! The connections of clients to the agent, and the reads of Services on each, shared by all
//! requests. [`Readers`] decides; this module counts connections, locks, and announces changes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::readers::{ClientId, ConnectionId, KubeProxySync, Readers, UserAgent};
use crate::node::view::Epoch;

/// All connections since the agent started.
#[derive(Debug, Default)]
pub(crate) struct ClientConnections {
    readers: Mutex<Readers>,
    /// Counts the changes of `readers`.
    changes: watch::Sender<u64>,
    next_id: AtomicU64,
}

impl ClientConnections {
    /// Registers a new connection. It counts as closed when its last holder drops it.
    pub(crate) fn open(self: &Arc<Self>) -> Arc<ClientConnection> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        Arc::new(ClientConnection { id, connections: self.clone() })
    }

    /// Announces each change of the clients' reads.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Says how much of an epoch kube-proxy has read.
    pub(crate) fn kube_proxy(&self, epoch: Epoch) -> KubeProxySync {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).kube_proxy(epoch)
    }

    fn update<T>(&self, update: impl FnOnce(&mut Readers) -> T) -> T {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let before = readers.clone();
        let result = update(&mut readers);
        if *readers != before {
            self.changes.send_modify(|count| *count += 1);
        }
        result
    }
}

/// One connection of a client.
#[derive(Debug)]
pub(crate) struct ClientConnection {
    id: ConnectionId,
    connections: Arc<ClientConnections>,
}

impl ClientConnection {
    /// Returns the client that sends this User-Agent over the connection.
    pub(crate) fn client(self: &Arc<Self>, user_agent: UserAgent) -> ClientHandle {
        ClientHandle { id: ClientId { user_agent, connection: self.id }, connection: self.clone() }
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        self.connections.update(|readers| readers.connection_closed(self.id));
    }
}

/// A client with a response in progress. It keeps the connection registered.
#[derive(Debug, Clone)]
pub(crate) struct ClientHandle {
    id: ClientId,
    connection: Arc<ClientConnection>,
}

impl ClientHandle {
    /// Updates the reads of this client.
    pub(crate) fn update<T>(&self, update: impl FnOnce(&mut Readers, ClientId) -> T) -> T {
        self.connection.connections.update(|readers| update(readers, self.id))
    }
}
