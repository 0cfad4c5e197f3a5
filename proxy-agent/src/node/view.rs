//! The node's current view, shared by the tasks of the agent. `view_source` publishes it; the mode
//! applies it and the report acknowledges it.

use std::collections::BTreeSet;
use std::sync::Arc;

use isp_api::IngressSourcePreserve;
use isp_api::age::by_age;
use isp_api::view::{Narrowing, NodeView};
use kube::core::ObjectMeta;
use tokio::sync::watch;

/// Counts the views that narrow differently, since the agent started. The first one is 1.
pub(crate) type Epoch = u64;

/// An object, as far as it decides which Services an agent serves. The rest of an object's status
/// changes often and means nothing to an agent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PreservingObject {
    /// Name, age and spec.
    pub(crate) object: IngressSourcePreserve,
    /// Namespace and name of the Services that its status lists.
    pub(crate) listed: BTreeSet<(String, String)>,
}

impl PreservingObject {
    fn of(object: &IngressSourcePreserve) -> Self {
        let metadata = ObjectMeta {
            name: object.metadata.name.clone(),
            uid: object.metadata.uid.clone(),
            creation_timestamp: object.metadata.creation_timestamp.clone(),
            deletion_timestamp: object.metadata.deletion_timestamp.clone(),
            ..ObjectMeta::default()
        };
        let services = object.status.iter().flat_map(|status| &status.services);
        Self {
            object: IngressSourcePreserve { metadata, spec: object.spec.clone(), status: None },
            listed: services.map(|service| (service.namespace.clone(), service.name.clone())).collect(),
        }
    }
}

/// The view of one epoch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EpochView {
    pub(crate) epoch: Epoch,
    pub(crate) narrowing: Arc<Narrowing>,
    /// The view of each object. It may change without a new epoch.
    pub(crate) view: Arc<NodeView>,
    /// All objects, from the oldest to the newest. They may change without a new epoch.
    pub(crate) objects: Arc<[PreservingObject]>,
}

impl EpochView {
    /// Whether both are the same publication. Cheap, unlike a comparison.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.view, &other.view) && Arc::ptr_eq(&self.objects, &other.objects)
    }
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
    pub(crate) fn publish<'a>(
        &self,
        view: NodeView,
        objects: impl IntoIterator<Item = &'a IngressSourcePreserve>,
    ) {
        let objects: Arc<[_]> = by_age(objects).into_iter().map(PreservingObject::of).collect();
        self.0.send_if_modified(|current| {
            let same = current.as_ref().filter(|current| *current.narrowing == view.narrowing);
            let next = match (same, current.as_ref()) {
                (Some(same), _) => EpochView { view: Arc::new(view), objects, ..same.clone() },
                (None, earlier) => EpochView {
                    epoch: earlier.map_or(1, |current| current.epoch + 1),
                    narrowing: Arc::new(view.narrowing.clone()),
                    view: Arc::new(view),
                    objects,
                },
            };
            let changed = current.as_ref() != Some(&next);
            if changed {
                *current = Some(next);
            }
            changed
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_view_that_looks_different_begins_a_new_epoch() {
        let store = ViewStore::default();
        assert_eq!(store.current(), None);
        let mut views = store.subscribe();
        store.publish(NodeView::default(), []);
        assert_eq!(store.current().unwrap().epoch, 1);
        views.mark_unchanged();
        store.publish(NodeView::default(), []);
        assert!(!views.has_changed().unwrap(), "nothing changed");
        let mut acknowledged = NodeView::default();
        acknowledged.objects.push(isp_api::view::ObjectView {
            object: "one".to_owned(),
            uid: String::new(),
            generation: 1,
            beside: false,
            label: isp_api::preserve::ServiceLabel { key: "a".to_owned(), value: "1".to_owned() },
            view: isp_api::view::View::Full,
            doubt: None,
        });
        store.publish(acknowledged, []);
        assert!(views.has_changed().unwrap());
        assert_eq!(store.current().unwrap().epoch, 1);
    }

    #[test]
    fn a_status_that_lists_another_service_is_announced_and_a_changed_condition_is_not() {
        let store = ViewStore::default();
        let mut object = crate::fixtures::preserve("one", json!({}));
        store.publish(NodeView::default(), [&object]);
        let mut views = store.subscribe();
        views.mark_unchanged();
        object.metadata.resource_version = Some("2".to_owned());
        object.status = serde_json::from_value(json!({"observedGeneration": 3})).unwrap();
        store.publish(NodeView::default(), [&object]);
        assert!(!views.has_changed().unwrap());
        let listed =
            json!({"services": [{"namespace": "n", "name": "s", "ingressEndpoints": 0, "state": "Waiting"}]});
        object.status = serde_json::from_value(listed).unwrap();
        store.publish(NodeView::default(), [&object]);
        assert!(views.has_changed().unwrap());
    }
}
