//! What one node may see of the preserved Services: a pure function of the node's name and labels and of all objects, their status
//! included.
//!
//! The agent enforces it, and the plugin and the operator's simulation show it: all call [`view`]. The operator waits until agents
//! acknowledge it.
//!
//! The rules
//! - Without objects a node sees everything.
//! - A node is an ingress node of an object if `spec.ingressNodes` selects it *or* `status.ingressNodes` lists it. There the view of that
//!   object is `Full`, elsewhere it is what `spec.elsewhere` says. So a node widens its view by itself as soon as it is selected, and
//!   narrows it only after the operator has taken it off the list. The operator does that when another node serves the Services.
//! - No other object has a say in it: the objects of a node add up, so another object never widens a view.
//! - An object that is being deleted still counts. On the way back the policy and the label are undone first, and only then may
//!   a node see the Service again; the finalizer keeps the object, and with it the view, until that is done.
//! - Views are carried out by label, so of two objects that mark their Services with the same label only one can have
//!   its way: the older one stands, the newer one is reported in [`ObjectView::doubt`]. (The operator does not label
//!   Services of an object in such a conflict.)
//! - An object whose selector cannot be read has no ingress nodes but those that are listed. That is reported too. The schema keeps such objects out; they can only be left over from
//!   another version of it.

use std::collections::{BTreeMap, BTreeSet};

use kube::{
    ResourceExt,
    core::{Expression, Selector},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    IngressSourcePreserve,
    age::by_age,
    preserve::{Elsewhere, ServiceLabel},
    selector::BadSelector,
    validate::NodeIdentity,
};

#[cfg(test)]
mod tests;

/// What a node may see of a Service. The order is from wide to narrow.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum View {
    /// Everything.
    #[default]
    Full,
    /// No external addresses.
    ClusterOnly,
    /// Nothing.
    Hidden,
}

impl From<Elsewhere> for View {
    fn from(elsewhere: Elsewhere) -> Self {
        match elsewhere {
            Elsewhere::ClusterOnly => Self::ClusterOnly,
            Elsewhere::Hidden => Self::Hidden,
        }
    }
}

/// What one node may see, and on whose behalf.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeView {
    /// What is carried out. Two views with equal narrowing look the same to kube-proxy, whatever else differs.
    pub narrowing: Narrowing,
    /// What each object asks of this node, by name: what is acknowledged.
    pub objects: Vec<ObjectView>,
}

/// What one object asks of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectView {
    /// The name of the object.
    pub object: String,
    /// Its UID.
    pub uid: String,
    /// Its generation.
    pub generation: i64,
    /// The label of its Services.
    pub label: ServiceLabel,
    /// What this node may see of them, as far as this object is concerned.
    pub view: View,
    /// Why `view` may not be what the node really sees. An object in doubt must not be acknowledged.
    pub doubt: Option<Doubt>,
}

/// Why an object's view cannot be vouched for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Doubt {
    /// The label belongs to an older object, whose view stands.
    #[error(
        "spec.serviceLabel: {label} already marks the Services of the older IngressSourcePreserve {older}, so its view \
         stands; give this one another value"
    )]
    LabelTaken {
        /// The label that both objects use.
        label: ServiceLabel,
        /// The object whose view stands.
        older: String,
    },
    /// The ingress nodes cannot be told; the node is treated as one elsewhere, unless it is listed.
    #[error("spec.ingressNodes.selector: {0}")]
    IngressNodesUnknown(#[from] BadSelector),
}

/// What a node may see.
pub fn view<'a>(
    node: NodeIdentity<'_>,
    objects: impl IntoIterator<Item = &'a IngressSourcePreserve>,
) -> NodeView {
    let mut standing: BTreeMap<ServiceLabel, (View, String)> = BTreeMap::new();
    let mut views = Vec::new();
    for object in by_age(objects) {
        let mut own = object_view(node, object);
        if let Some((_, older)) = standing.get(&own.label) {
            own.doubt = Some(Doubt::LabelTaken { label: own.label.clone(), older: older.clone() });
        } else {
            standing.insert(own.label.clone(), (own.view, own.object.clone()));
        }
        views.push(own);
    }
    views.sort_by(|a, b| a.object.cmp(&b.object));
    let narrowed = standing.into_iter().map(|(label, (view, _))| (label, view));
    NodeView {
        narrowing: Narrowing(narrowed.filter(|(_, view)| *view > View::Full).collect()),
        objects: views,
    }
}

fn object_view(node: NodeIdentity<'_>, object: &IngressSourcePreserve) -> ObjectView {
    let listed = object.lists_ingress_node(node.name);
    let (ingress, doubt) = match object.spec.ingress_nodes.contains(node.labels) {
        Ok(selected) => (selected || listed, None),
        Err(bad) => (listed, Some(bad.into())),
    };
    let view = if ingress { View::Full } else { object.spec.elsewhere.into() };
    ObjectView {
        object: object.name_any(),
        uid: object.uid().unwrap_or_default(),
        generation: object.metadata.generation.unwrap_or_default(),
        label: object.service_label(),
        view,
        doubt,
    }
}

/// The labels of Services that a node does not see in full. What carries none of them is seen in full.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Narrowing(BTreeMap<ServiceLabel, View>);

impl Narrowing {
    /// Whether every Service is seen in full.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The narrowed labels in order, none of them `Full`.
    pub fn iter(&self) -> impl Iterator<Item = (&ServiceLabel, View)> {
        self.0.iter().map(|(label, view)| (label, *view))
    }

    /// What may be seen of a Service with these labels. Where several apply, the narrowest does.
    pub fn of(&self, service_labels: &BTreeMap<String, String>) -> View {
        service_labels.iter().map(|(key, value)| self.of_label(key, value)).max().unwrap_or_default()
    }

    /// What may be seen of a Service with this label, as far as this label is concerned.
    pub fn of_label(&self, key: &str, value: &str) -> View {
        // On most nodes, for most of the time, and then for every label of every Service that passes.
        if self.is_empty() {
            return View::Full;
        }
        let label = ServiceLabel { key: key.to_owned(), value: value.to_owned() };
        self.0.get(&label).copied().unwrap_or_default()
    }

    /// The label requirements that make the API server itself leave out every hidden Service. Empty where nothing is hidden.
    pub fn without_hidden(&self) -> Selector {
        let mut hidden: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for (label, _) in self.iter().filter(|(_, view)| *view == View::Hidden) {
            hidden.entry(&label.key).or_default().insert(label.value.clone());
        }
        hidden.into_iter().map(|(key, values)| Expression::NotIn(key.to_owned(), values)).collect()
    }
}
