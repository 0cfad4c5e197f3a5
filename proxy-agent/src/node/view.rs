//! What the parts of the agent share: the node's current view, and what clients have read of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use isp_api::view::{Narrowing, NodeView};
use tokio::sync::watch;

use crate::filter::readers::{Client, ConnectionId, Program, Readers, Reading};
use crate::filter::session::Epoch;

/// The view of one epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Current {
    pub(crate) epoch: Epoch,
    pub(crate) narrowing: Arc<Narrowing>,
    /// What each object asks: it may change without a new epoch.
    pub(crate) view: Arc<NodeView>,
}

/// Shared by all requests, and by what reports.
#[derive(Debug)]
pub(crate) struct State {
    view: watch::Sender<Option<Current>>,
    readers: Mutex<Readers>,
    /// Counts up whenever `readers` changes.
    changes: watch::Sender<u64>,
    connections: AtomicU64,
}

/// One connection of the agent's. What was read over it ends with the last that holds it.
#[derive(Debug)]
pub(crate) struct Connection {
    id: ConnectionId,
    state: Arc<State>,
}

impl Connection {
    /// A client of that name on this connection.
    pub(crate) fn client(self: &Arc<Self>, program: Program) -> Caller {
        Caller { client: Client { program, connection: self.id }, connection: self.clone() }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.state.change(|readers| readers.left(self.id));
    }
}

/// Who reads, for as long as an answer to it lasts.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    client: Client,
    connection: Arc<Connection>,
}

impl Caller {
    /// Notes something about what this client has.
    pub(crate) fn note<T>(&self, note: impl FnOnce(&mut Readers, Client) -> T) -> T {
        self.connection.state.change(|readers| note(readers, self.client))
    }
}

impl State {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            view: watch::Sender::new(None),
            readers: Mutex::default(),
            changes: watch::Sender::new(0),
            connections: AtomicU64::new(0),
        })
    }

    /// The view, once it is known.
    pub(crate) fn current(&self) -> Option<Current> {
        self.view.borrow().clone()
    }

    /// Follows the view.
    pub(crate) fn views(&self) -> watch::Receiver<Option<Current>> {
        self.view.subscribe()
    }

    /// Follows what kube-proxy has.
    pub(crate) fn readings(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Takes a new view. Only one that looks different to kube-proxy begins a new epoch.
    pub(crate) fn publish(&self, view: NodeView) {
        self.view.send_if_modified(|current| {
            let same = current.as_ref().filter(|current| *current.narrowing == view.narrowing);
            let next = match (same, current.as_ref()) {
                (Some(same), _) => Current { view: Arc::new(view), ..same.clone() },
                (None, earlier) => Current {
                    epoch: earlier.map_or(1, |current| current.epoch + 1),
                    narrowing: Arc::new(view.narrowing.clone()),
                    view: Arc::new(view),
                },
            };
            let changed = current.as_ref() != Some(&next);
            *current = Some(next);
            changed
        });
    }

    /// What kube-proxy has of an epoch.
    pub(crate) fn reading(&self, epoch: Epoch) -> Reading {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).reading(epoch)
    }

    /// A new connection.
    pub(crate) fn connect(self: &Arc<Self>) -> Arc<Connection> {
        let id = self.connections.fetch_add(1, Ordering::Relaxed);
        Arc::new(Connection { id, state: self.clone() })
    }

    fn change<T>(&self, note: impl FnOnce(&mut Readers) -> T) -> T {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let before = readers.clone();
        let result = note(&mut readers);
        if *readers != before {
            self.changes.send_modify(|count| *count += 1);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_view_that_looks_different_begins_a_new_epoch() {
        let state = State::new();
        assert_eq!(state.current(), None);
        let mut views = state.views();
        state.publish(NodeView::default());
        assert_eq!(state.current().unwrap().epoch, 1);
        views.mark_unchanged();
        state.publish(NodeView::default());
        assert!(!views.has_changed().unwrap(), "nothing changed");
        let mut acknowledged = NodeView::default();
        acknowledged.objects.push(isp_api::view::ObjectView {
            object: "one".to_owned(),
            uid: String::new(),
            generation: 1,
            label: isp_api::preserve::ServiceLabel { key: "a".to_owned(), value: "1".to_owned() },
            view: isp_api::view::View::Full,
            doubt: None,
        });
        state.publish(acknowledged);
        assert!(views.has_changed().unwrap());
        assert_eq!(state.current().unwrap().epoch, 1);
    }
}
