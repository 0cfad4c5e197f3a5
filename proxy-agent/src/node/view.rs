//! The node's current view, shared by the tasks of the agent. `view_source` publishes it; the mode
//! applies it and the report acknowledges it.

use std::sync::Arc;

use isp_api::view::{Narrowing, NodeView};
use tokio::sync::watch;

/// Counts the views that narrow differently, since the agent started. The first one is 1.
pub(crate) type Epoch = u64;

/// The view of one epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EpochView {
    pub(crate) epoch: Epoch,
    pub(crate) narrowing: Arc<Narrowing>,
    /// The view of each object. It may change without a new epoch.
    pub(crate) view: Arc<NodeView>,
}

/// Holds the current view and announces its changes.
#[derive(Debug, Default)]
pub(crate) struct ViewStore(watch::Sender<Option<EpochView>>);

impl ViewStore {
    /// Returns the view, or `None` while it is not known yet.
    pub(crate) fn current(&self) -> Option<EpochView> {
        self.0.borrow().clone()
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<EpochView>> {
        self.0.subscribe()
    }

    /// Stores a view. It begins a new epoch only if it narrows differently from the current one.
    pub(crate) fn publish(&self, view: NodeView) {
        self.0.send_if_modified(|current| {
            let same = current.as_ref().filter(|current| *current.narrowing == view.narrowing);
            let next = match (same, current.as_ref()) {
                (Some(same), _) => EpochView { view: Arc::new(view), ..same.clone() },
                (None, earlier) => EpochView {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_view_that_looks_different_begins_a_new_epoch() {
        let store = ViewStore::default();
        assert_eq!(store.current(), None);
        let mut views = store.subscribe();
        store.publish(NodeView::default());
        assert_eq!(store.current().unwrap().epoch, 1);
        views.mark_unchanged();
        store.publish(NodeView::default());
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
        store.publish(acknowledged);
        assert!(views.has_changed().unwrap());
        assert_eq!(store.current().unwrap().epoch, 1);
    }
}
