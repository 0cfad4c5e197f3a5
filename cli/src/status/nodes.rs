//! The nodes, as far as `status` looks at them: their labels, and whether their agent failed.

use std::collections::BTreeMap;

use isp_api::IngressSourcePreserve;
use isp_api::names::FAILURE_ANNOTATION;
use isp_api::validate::NodeIdentity;
use isp_api::view::{View, view};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, ResourceExt};

use crate::connection::Connection;
use crate::error::CommandError;
use crate::read;

/// The nodes by name. None: the right to list them is missing.
pub(super) type Nodes = Option<BTreeMap<String, NodeFacts>>;

#[derive(Clone, Debug, Default)]
pub(super) struct NodeFacts {
    pub(super) labels: BTreeMap<String, String>,
    /// Whether the operator took its agent away, or stopped pulling its images.
    pub(super) failed: bool,
}

/// Reads names, labels and annotations only.
pub(super) async fn read(connection: &Connection) -> Result<Nodes, CommandError> {
    let mut nodes = BTreeMap::new();
    let api: Api<Node> = Api::all(connection.client.clone());
    let read = read::each_metadata(connection, api, |node| {
        let failed = node.annotations().contains_key(FAILURE_ANNOTATION);
        let labels = node.metadata.labels.clone().unwrap_or_default();
        nodes.insert(node.name_any(), NodeFacts { labels, failed });
    })
    .await;
    match read {
        Ok(()) => Ok(Some(nodes)),
        Err(CommandError::Forbidden { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The view that a node should have of the object's Services. Without the labels of nodes it
/// follows from `status.ingressNodes`, which the operator keeps.
pub(super) fn wanted_view(object: &IngressSourcePreserve, nodes: &Nodes, name: &str) -> View {
    let facts = nodes.as_ref().and_then(|nodes| nodes.get(name));
    let none = BTreeMap::new();
    let labels = match facts {
        Some(facts) => &facts.labels,
        None if object.lists_ingress_node(name) => return View::Full,
        None if nodes.is_none() => return object.spec.elsewhere.into(),
        None => &none,
    };
    let views = view(NodeIdentity { name, labels }, [object]).objects;
    views.first().map(|own| own.view).unwrap_or_default()
}

/// The nodes whose agent failed, of those on which the object hides something.
pub(super) fn failed<'a>(object: &IngressSourcePreserve, nodes: &'a Nodes) -> Vec<&'a str> {
    let failed = nodes.iter().flatten().filter(|(_, facts)| facts.failed);
    let names = failed.map(|(name, _)| name.as_str());
    names.filter(|name| wanted_view(object, nodes, name) != View::Full).collect()
}

/// The nodes that need an agent and that no pool of the object selects.
pub(super) fn without_pool<'a>(object: &IngressSourcePreserve, nodes: &'a Nodes) -> Vec<&'a str> {
    let pools = object.spec.pools();
    let selected = |facts: &NodeFacts| pools.iter().any(|pool| pool.contains(&facts.labels).unwrap_or(false));
    let without = nodes.iter().flatten().filter(|(_, facts)| !selected(facts));
    let names = without.map(|(name, _)| name.as_str());
    names.filter(|name| wanted_view(object, nodes, name) != View::Full).collect()
}
