//! Follows the node's view. The agent watches all IngressSourcePreserves and its own Node, as
//! itself, and computes the view whenever one of them changes. There is no view until both lists
//! are complete.

use std::sync::Arc;

use futures_util::StreamExt;
use isp_api::IngressSourcePreserve;
use isp_api::validate::NodeIdentity;
use isp_api::view::view;
use isp_client::{Collected, events, named, watching};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client, ResourceExt};
use tracing::info;

use super::metrics::NodeMetrics;
use super::view::ViewStore;

/// Watches the API and publishes views. Does not return.
pub(super) async fn follow(client: Client, node: String, store: Arc<ViewStore>, metrics: Arc<NodeMetrics>) {
    let mut object_events = Box::pin(events(Api::<IngressSourcePreserve>::all(client.clone()), watching()));
    let mut node_events = Box::pin(events(Api::<Node>::all(client), named(&node)));
    let (mut objects, mut nodes) = (Collected::default(), Collected::default());
    loop {
        tokio::select! {
            Some(event) = object_events.next() => objects.fold(event, |object| object),
            Some(event) = node_events.next() => nodes.fold(event, |node| node),
            else => return,
        };
        let (Some(objects), Some(nodes)) = (objects.complete(), nodes.complete()) else { continue };
        // A Node that does not exist yet has no labels, so no object selects it as ingress node.
        let labels = nodes.get(&node).map(|node| node.labels().clone()).unwrap_or_default();
        let before = store.current().map(|current| current.epoch);
        let view = view(NodeIdentity { name: &node, labels: &labels }, objects.values());
        store.publish(view, objects.values());
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
