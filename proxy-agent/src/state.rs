//! What the parts of the agent share: the node's current view, and what kube-proxy has read of it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use isp_api::view::{Narrowing, NodeView};
use tokio::sync::watch;

use crate::request::Read;
use crate::session::{Admission, Epoch, Session};

/// The view of one epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Current {
    pub(crate) epoch: Epoch,
    pub(crate) narrowing: Arc<Narrowing>,
    /// What each object asks: it may change without a new epoch.
    pub(crate) view: Arc<NodeView>,
}

/// What kube-proxy has, as far as the agent can know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) session: Session,
    /// Open watches of Services.
    pub(crate) watches: u32,
    /// When kube-proxy had been sent what it has now.
    pub(crate) synced_at: Option<SystemTime>,
}

/// Shared by all requests, and by what reports.
#[derive(Debug)]
pub(crate) struct State {
    view: watch::Sender<Option<Current>>,
    reading: Mutex<Reading>,
    /// Counts up whenever `reading` changes.
    changes: watch::Sender<u64>,
}

impl State {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            view: watch::Sender::new(None),
            reading: Mutex::default(),
            changes: watch::Sender::new(0),
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

    /// What kube-proxy has.
    pub(crate) fn reading(&self) -> Reading {
        *self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn admit(&self, read: Read, epoch: Epoch) -> Admission {
        self.change(|reading| reading.session.admit(read, epoch))
    }

    /// Notes something about what kube-proxy has.
    pub(crate) fn change<T>(&self, note: impl FnOnce(&mut Reading) -> T) -> T {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let before = *reading;
        let result = note(&mut reading);
        if *reading != before {
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
