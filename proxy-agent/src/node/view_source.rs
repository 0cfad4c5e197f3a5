//! Follows the node's view. The agent watches all IngressSourcePreserves and its own Node, as
//! itself, and computes the view whenever one of them changes. There is no view until both lists
//! are complete.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt;
use isp_api::IngressSourcePreserve;
use isp_api::validate::NodeIdentity;
use isp_api::view::view;
use isp_client::{events, named, watching};
use k8s_openapi::api::core::v1::Node;
use kube::runtime::watcher::Event;
use kube::{Api, Client, Resource, ResourceExt};
use tracing::info;

use super::metrics::NodeMetrics;
use super::view::ViewStore;

/// Watches the API and publishes views. Does not return.
pub(super) async fn follow(client: Client, node: String, store: Arc<ViewStore>, metrics: Arc<NodeMetrics>) {
    let mut object_events = Box::pin(events(Api::<IngressSourcePreserve>::all(client.clone()), watching()));
    let mut node_events = Box::pin(events(Api::<Node>::all(client), named(&node)));
    let (mut objects, mut nodes) = (WatchCache::default(), WatchCache::default());
    loop {
        tokio::select! {
            Some(event) = object_events.next() => objects.apply(event),
            Some(event) = node_events.next() => nodes.apply(event),
            else => return,
        }
        let (Some(objects), Some(nodes)) = (&objects.listed, &nodes.listed) else { continue };
        // A Node that does not exist yet has no labels, so no object selects it as ingress node.
        let labels = nodes.get(&node).map(|node| node.labels().clone()).unwrap_or_default();
        let before = store.current().map(|current| current.epoch);
        store.publish(view(NodeIdentity { name: &node, labels: &labels }, objects.values()));
        let after = store.current();
        if after.as_ref().map(|current| current.epoch) != before {
            metrics.view_changed();
            let narrowed: Vec<String> = after
                .iter()
                .flat_map(|now| {
                    now.narrowing.iter().map(|(label, view)| format!("{label} {view:?}")).collect::<Vec<_>>()
                })
                .collect();
            info!(narrowed = narrowed.join(", "), "the view of this node changed");
        }
    }
}

/// The objects of a watch by name.
struct WatchCache<K> {
    /// `None` until the first list is complete.
    listed: Option<BTreeMap<String, K>>,
    /// The objects of a list that is not complete yet.
    listing: BTreeMap<String, K>,
}

impl<K> Default for WatchCache<K> {
    fn default() -> Self {
        Self { listed: None, listing: BTreeMap::new() }
    }
}

impl<K: Resource> WatchCache<K> {
    fn apply(&mut self, event: Event<K>) {
        match event {
            Event::Init => self.listing.clear(),
            Event::InitApply(object) => drop(self.listing.insert(object.name_any(), object)),
            Event::InitDone => self.listed = Some(std::mem::take(&mut self.listing)),
            Event::Apply(object) => {
                drop(self.listed.get_or_insert_default().insert(object.name_any(), object));
            }
            Event::Delete(object) => drop(self.listed.get_or_insert_default().remove(&object.name_any())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> Node {
        Node {
            metadata: kube::core::ObjectMeta { name: Some(name.to_owned()), ..Default::default() },
            ..Node::default()
        }
    }

    #[test]
    fn nothing_is_known_until_all_was_read_and_a_new_reading_replaces_the_old_one_as_a_whole() {
        let mut nodes = WatchCache::default();
        nodes.apply(Event::Init);
        nodes.apply(Event::InitApply(node("a")));
        assert!(nodes.listed.is_none());
        nodes.apply(Event::InitDone);
        nodes.apply(Event::Apply(node("b")));
        let names = |nodes: &WatchCache<Node>| {
            nodes.listed.iter().flatten().map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&nodes), ["a", "b"]);
        nodes.apply(Event::Init);
        nodes.apply(Event::InitApply(node("c")));
        assert_eq!(names(&nodes), ["a", "b"], "what is known stays known meanwhile");
        nodes.apply(Event::InitDone);
        assert_eq!(names(&nodes), ["c"]);
        nodes.apply(Event::Delete(node("c")));
        assert!(names(&nodes).is_empty());
    }
}
