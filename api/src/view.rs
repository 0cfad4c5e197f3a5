//! Which parts of the preserved Services one node may see: a pure function of the node's name and
//! labels and of all objects, including their status.
//!
//! The agent enforces the view; the kubectl plugin and the operator's simulation compute it. All of
//! them call [`view`]. The operator waits until agents acknowledge it.
//!
//! Rules:
//! - Without objects a node sees everything.
//! - A node is an ingress node of an object if `spec.ingressNodes` selects it *or*
//!   `status.ingressNodes` lists it. Its view of that object is then `Full`, otherwise it is
//!   `spec.elsewhere`. A node thus widens its view as soon as it is selected, but narrows it only
//!   after the operator has removed it from the list, which happens once another node serves the
//!   Services.
//! - Objects are independent: another object never widens a view.
//! - An object that is being deleted still counts. Policy and label are restored first; only then
//!   may a node see the Service again. The finalizer keeps the object, and with it the view, until
//!   then.
//! - Views are applied by label. If two objects use the same label, the older object's view applies
//!   and the newer one is reported in [`ObjectView::doubt`]. The operator does not label the
//!   Services of an object in such a conflict.
//! - An object with an invalid selector has only the listed ingress nodes, and is reported, too.
//!   The schema rejects such objects; they can only originate from another version of the schema.

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
    names::{ORIGINAL_ANNOTATION, PROXY_NAME, SERVICE_PROXY_NAME_LABEL},
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

/// The view of one node, and the part of each object in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeView {
    /// The part that is enforced. kube-proxy cannot distinguish two views with equal narrowing.
    pub narrowing: Narrowing,
    /// The part of each object, sorted by name. These are acknowledged.
    pub objects: Vec<ObjectView>,
}

/// The view that one object requires of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectView {
    /// The name of the object.
    pub object: String,
    /// Its UID.
    pub uid: String,
    /// Its generation.
    pub generation: i64,
    /// Whether the agents of mode Beside serve its Services.
    pub beside: bool,
    /// The label of its Services.
    pub label: ServiceLabel,
    /// The node's view of them, by this object alone.
    pub view: View,
    /// Why `view` may differ from what the node really sees. An object in doubt must not be
    /// acknowledged.
    pub doubt: Option<Doubt>,
}

/// Why an object's view is not guaranteed to be in effect.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Doubt {
    /// An older object uses the same label, and its view applies.
    #[error(
        "spec.serviceLabel: {label} already marks the Services of the older IngressSourcePreserve {older}, whose view \
         applies; give this one another value"
    )]
    LabelTaken {
        /// The label that both objects use.
        label: ServiceLabel,
        /// The object whose view applies.
        older: String,
    },
    /// The selector is invalid; the node counts as a non-ingress node unless the status lists it.
    #[error("spec.ingressNodes.selector: {0}")]
    IngressNodesUnknown(#[from] BadSelector),
}

impl ObjectView {
    /// What the agent of mode Beside serves of a Service that the object owns, or that its status
    /// lists (`is_listed`). None: it does not serve it for this object.
    ///
    /// It serves the Services of objects of its mode, so that it can take them over, those of
    /// objects that leave the mode, until kube-proxies serve them, and every Service that
    /// kube-proxies skip for its sake, because nothing else does. A Service of these that has lost
    /// the object's label is open: it is served in full.
    pub fn served(&self, service_labels: &BTreeMap<String, String>, is_listed: bool) -> Option<View> {
        let is_marked = service_labels.get(&self.label.key) == Some(&self.label.value);
        let is_taken_over = is_taken_over(service_labels);
        match (is_marked, is_taken_over) {
            _ if self.doubt.is_some() => None,
            (true, true) => Some(self.view),
            (true, false) => self.beside.then_some(self.view),
            (false, true) => is_listed.then_some(View::Full),
            (false, false) => None,
        }
    }
}

impl NodeView {
    /// Whether the agents of mode Beside serve the Services of an object.
    pub fn is_beside(&self) -> bool {
        self.objects.iter().any(|object| object.beside)
    }

    /// The labels of all Services that the agent of mode Beside may have to serve.
    pub fn served_labels(&self) -> BTreeSet<ServiceLabel> {
        let beside = self.objects.iter().filter(|object| object.beside);
        let taken_over =
            ServiceLabel { key: SERVICE_PROXY_NAME_LABEL.to_owned(), value: PROXY_NAME.to_owned() };
        beside.map(|object| object.label.clone()).chain([taken_over]).collect()
    }
}

/// Whether kube-proxies skip a Service with these labels because the agents of mode Beside serve
/// it.
pub fn is_taken_over(service_labels: &BTreeMap<String, String>) -> bool {
    service_labels.get(SERVICE_PROXY_NAME_LABEL).is_some_and(|name| name == PROXY_NAME)
}

/// Whether only the agents of mode Beside are sure to serve a Service: kube-proxies skip it, or the
/// operator's record says that they did so not long ago.
pub fn depends_on_beside(
    service_labels: &BTreeMap<String, String>,
    service_annotations: &BTreeMap<String, String>,
) -> bool {
    #[derive(Deserialize)]
    struct Record {
        #[serde(default)]
        skipped: bool,
    }
    let record = service_annotations.get(ORIGINAL_ANNOTATION);
    let record = record.and_then(|record| serde_json::from_str::<Record>(record).ok());
    is_taken_over(service_labels) || record.is_some_and(|record| record.skipped)
}

/// Computes the view of a node.
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
        beside: object.is_served_beside(),
        label: object.service_label(),
        view,
        doubt,
    }
}

/// The labels of Services that a node does not see in full. Services with none of them are seen in
/// full.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Narrowing(BTreeMap<ServiceLabel, View>);

impl Narrowing {
    /// Whether every Service is seen in full.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The narrowed labels, sorted. None of them is `Full`.
    pub fn iter(&self) -> impl Iterator<Item = (&ServiceLabel, View)> {
        self.0.iter().map(|(label, view)| (label, *view))
    }

    /// The view of a Service with these labels. If several apply, the narrowest wins.
    pub fn of(&self, service_labels: &BTreeMap<String, String>) -> View {
        service_labels.iter().map(|(key, value)| self.of_label(key, value)).max().unwrap_or_default()
    }

    /// The view of a Service by this label alone.
    pub fn of_label(&self, key: &str, value: &str) -> View {
        // Fast path: runs for every label of every Service; usually nothing is narrowed.
        if self.is_empty() {
            return View::Full;
        }
        let label = ServiceLabel { key: key.to_owned(), value: value.to_owned() };
        self.0.get(&label).copied().unwrap_or_default()
    }

    /// The label requirements that make the API server omit every hidden Service. Empty if nothing
    /// is hidden.
    pub fn without_hidden(&self) -> Selector {
        let mut hidden: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for (label, _) in self.iter().filter(|(_, view)| *view == View::Hidden) {
            hidden.entry(&label.key).or_default().insert(label.value.clone());
        }
        hidden.into_iter().map(|(key, values)| Expression::NotIn(key.to_owned(), values)).collect()
    }
}
