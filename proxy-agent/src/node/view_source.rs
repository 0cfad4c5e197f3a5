//! Where the node's view comes from: the agent watches all IngressSourcePreserves and its own Node, as itself, and
//! computes the view anew whenever one of them changes. Until both have been read whole there is no view.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::{Stream, StreamExt, TryStreamExt};
use isp_api::IngressSourcePreserve;
use isp_api::validate::NodeIdentity;
use isp_api::view::view;
use k8s_openapi::api::core::v1::Node;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, Client, Resource, ResourceExt};
use tracing::{info, warn};

use crate::filter::metrics::Metrics;
use crate::node::view::State;

/// How long a watch lasts. A connection that is dead without a word is noticed soon after, and so is a right that was taken away.
const WATCH_SECONDS: u32 = 60;

/// Follows the API and publishes views, for ever.
pub(crate) async fn follow(client: Client, node: String, state: Arc<State>, metrics: Arc<Metrics>) {
    let everything = watcher::Config::default().timeout(WATCH_SECONDS);
    let own = watcher::Config::default().timeout(WATCH_SECONDS).fields(&format!("metadata.name={node}"));
    let mut objects = Box::pin(events(Api::<IngressSourcePreserve>::all(client.clone()), everything));
    let mut nodes = Box::pin(events(Api::<Node>::all(client), own));
    let (mut all_objects, mut all_nodes) = (Collected::default(), Collected::default());
    loop {
        tokio::select! {
            Some(event) = objects.next() => all_objects.take(event),
            Some(event) = nodes.next() => all_nodes.take(event),
            else => return,
        }
        let (Some(objects), Some(nodes)) = (&all_objects.known, &all_nodes.known) else { continue };
        // A node that is not there yet has no labels, so it is nobody's ingress node.
        let labels = nodes.get(&node).map(|node| node.labels().clone()).unwrap_or_default();
        let before = state.current().map(|current| current.epoch);
        state.publish(view(NodeIdentity { name: &node, labels: &labels }, objects.values()));
        let after = state.current();
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

/// The events of a watch that never gives up.
fn events<K>(api: Api<K>, config: watcher::Config) -> impl Stream<Item = Event<K>>
where
    K: Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + 'static,
{
    watch(api, config)
        .default_backoff()
        .inspect_err(|error| warn!(%error, "a watch of the agent's own failed; it is tried again"))
        .filter_map(|event| std::future::ready(event.ok()))
}

/// Objects by name, as they are now.
struct Collected<K> {
    /// None until they have been read whole once.
    known: Option<BTreeMap<String, K>>,
    /// What has come of a reading that is not whole yet.
    coming: BTreeMap<String, K>,
}

impl<K> Default for Collected<K> {
    fn default() -> Self {
        Self { known: None, coming: BTreeMap::new() }
    }
}

impl<K: Resource> Collected<K> {
    fn take(&mut self, event: Event<K>) {
        match event {
            Event::Init => self.coming.clear(),
            Event::InitApply(object) => drop(self.coming.insert(object.name_any(), object)),
            Event::InitDone => self.known = Some(std::mem::take(&mut self.coming)),
            Event::Apply(object) => {
                drop(self.known.get_or_insert_default().insert(object.name_any(), object));
            }
            Event::Delete(object) => drop(self.known.get_or_insert_default().remove(&object.name_any())),
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
        let mut nodes = Collected::default();
        nodes.take(Event::Init);
        nodes.take(Event::InitApply(node("a")));
        assert!(nodes.known.is_none());
        nodes.take(Event::InitDone);
        nodes.take(Event::Apply(node("b")));
        let names = |nodes: &Collected<Node>| {
            nodes.known.iter().flatten().map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&nodes), ["a", "b"]);
        nodes.take(Event::Init);
        nodes.take(Event::InitApply(node("c")));
        assert_eq!(names(&nodes), ["a", "b"], "what is known stays known meanwhile");
        nodes.take(Event::InitDone);
        assert_eq!(names(&nodes), ["c"]);
        nodes.take(Event::Delete(node("c")));
        assert!(names(&nodes).is_empty());
    }
}
