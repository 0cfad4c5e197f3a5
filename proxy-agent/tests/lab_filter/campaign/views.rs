//! Changes of the node's view: objects that come, change and go, and a node that becomes an ingress node and ceases to be one.

use std::collections::{BTreeMap, BTreeSet};

use isp_api::names::SERVICE_LABEL;
use isp_api::node::AcknowledgedView;
use isp_api::view::{NodeView, View, view};
use isp_api::{IngressSourceNode, IngressSourcePreserve};
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use super::churn::insist;
use super::random::Random;
use crate::harness::NODE;

const INGRESS: &str = "churn.example/ingress";
const OWN_KEY: &str = "churn.example/preserve";
pub(super) const LABEL_KEYS: [&str; 2] = [SERVICE_LABEL, OWN_KEY];

/// The objects that there can be, and the key of their label. The first two are always there, and between them every change of
/// the node's role shows.
pub(super) const OBJECTS: [(&str, &str); 6] = [
    ("steady-a", SERVICE_LABEL),
    ("steady-b", SERVICE_LABEL),
    ("view-1", SERVICE_LABEL),
    ("view-2", SERVICE_LABEL),
    ("view-3", OWN_KEY),
    ("view-4", OWN_KEY),
];

/// A label of some object, as key and value.
pub(super) fn any_label(random: &mut Random) -> (&'static str, &'static str) {
    let (object, key) = random.pick(&OBJECTS);
    (key, object)
}

/// How far a change has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The agent knows of it.
    Known,
    /// kube-proxy has been sent all of it.
    Relisted,
    /// The kernel has it.
    Programmed,
}

/// What an object says.
#[derive(Debug, Clone, Copy)]
struct Wish {
    hidden: bool,
    /// Which nodes are its ingress nodes.
    ingress: &'static str,
    /// Something that no view depends on.
    services: usize,
}

/// The objects and the node, as they have been written.
pub(super) struct Views {
    objects: Api<IngressSourcePreserve>,
    nodes: Api<Node>,
    acknowledged: Api<IngressSourceNode>,
    random: Random,
    wishes: BTreeMap<&'static str, Wish>,
    written: BTreeMap<&'static str, IngressSourcePreserve>,
    node_labels: BTreeMap<String, String>,
    /// How many changes kube-proxy could see, and how many it could not.
    pub(super) real: u64,
    pub(super) void: u64,
}

impl Views {
    /// Begins with the two objects that stay.
    pub(super) async fn new(client: &Client, random: Random) -> Self {
        let mut views = Self {
            objects: Api::all(client.clone()),
            nodes: Api::all(client.clone()),
            acknowledged: Api::all(client.clone()),
            random,
            wishes: BTreeMap::new(),
            written: BTreeMap::new(),
            node_labels: BTreeMap::new(),
            real: 0,
            void: 0,
        };
        views.label_node(INGRESS, None).await;
        for (object, ingress) in [("steady-a", "a"), ("steady-b", "b")] {
            views.write(object, Wish { hidden: object == "steady-a", ingress, services: 1 }).await;
        }
        views
    }

    /// What the node may see.
    pub(super) fn view(&self) -> NodeView {
        view(isp_api::validate::NodeIdentity { name: NODE, labels: &self.node_labels }, self.written.values())
    }

    /// What the node may see of the Services of each object, objects that are not there included.
    pub(super) fn of_each(&self) -> [View; OBJECTS.len()] {
        let narrowing = self.view().narrowing;
        OBJECTS.map(|(object, key)| narrowing.of_label(key, object))
    }

    /// Makes one change.
    pub(super) async fn change(&mut self) {
        let before = self.view().narrowing;
        self.make_a_change().await;
        if self.view().narrowing == before {
            self.void += 1;
        } else {
            self.real += 1;
        }
    }

    async fn make_a_change(&mut self) {
        let (object, _) = self.random.pick(&OBJECTS);
        let stays = object.starts_with("steady");
        let wish = self.wishes.get(object).copied();
        match (self.random.below(100), wish) {
            (0..15, _) => {
                let role = self.random.pick(&[None, Some("a"), Some("b")]);
                self.label_node(INGRESS, role).await;
            }
            (15..20, _) => {
                let value = self.random.pick(&["1", "2", "3"]);
                self.label_node("churn.example/other", Some(value)).await;
            }
            (_, None) => {
                let (hidden, ingress) = (self.random.chance(50), self.random.pick(&["a", "b"]));
                self.write(object, Wish { hidden, ingress, services: 1 }).await;
            }
            (20..40, Some(_)) if !stays => self.delete(object).await,
            (20..50, Some(wish)) if !stays => {
                let ingress = if wish.ingress == "a" { "b" } else { "a" };
                self.write(object, Wish { ingress, ..wish }).await;
            }
            (90.., Some(wish)) => self.write(object, Wish { services: wish.services % 4 + 1, ..wish }).await,
            (_, Some(wish)) => self.write(object, Wish { hidden: !wish.hidden, ..wish }).await,
        }
    }

    async fn write(&mut self, name: &'static str, wish: Wish) {
        let key = OBJECTS.iter().find(|(object, _)| *object == name).unwrap().1;
        let services: Vec<_> = (0..wish.services)
            .map(|number| json!({"namespace": "default", "name": format!("churn-{number}")}))
            .collect();
        let object = json!({
            "apiVersion": "sourcepreserve.io/v1alpha1",
            "kind": "IngressSourcePreserve",
            "metadata": {"name": name},
            "spec": {
                "ingressNodes": {"selector": {"matchLabels": {INGRESS: wish.ingress}}},
                "services": services,
                "serviceLabel": {"key": key},
                "elsewhere": if wish.hidden { "Hidden" } else { "ClusterOnly" },
            },
        });
        let apply = PatchParams::apply("campaign").force();
        let patch = Patch::Apply(object);
        let written = insist(async || self.objects.patch(name, &apply, &patch).await).await.unwrap();
        self.wishes.insert(name, wish);
        self.written.insert(name, written);
    }

    async fn delete(&mut self, name: &'static str) {
        let result = insist(async || self.objects.delete(name, &DeleteParams::default()).await).await;
        assert!(matches!(&result, Ok(_) | Err(kube::Error::Api(_))), "{result:?}");
        self.wishes.remove(name);
        self.written.remove(name);
    }

    async fn label_node(&mut self, key: &str, value: Option<&str>) {
        let patch = Patch::Merge(json!({"metadata": {"labels": {key: value}}}));
        let written =
            insist(async || self.nodes.patch(NODE, &PatchParams::default(), &patch).await).await.unwrap();
        self.node_labels = written.labels().clone();
    }

    /// Whether the agent says that everything has come so far with every change.
    pub(super) async fn have_come(&self, stage: Stage) -> bool {
        let node = insist(async || self.acknowledged.get_opt(NODE).await).await.unwrap();
        let Some(status) = node.and_then(|node| node.status) else { return false };
        let wanted: BTreeSet<_> = self
            .view()
            .objects
            .into_iter()
            .map(|object| (object.object, object.uid, object.generation, object.view))
            .collect();
        let reached = |view: &AcknowledgedView| match stage {
            Stage::Known => true,
            Stage::Relisted => view.relisted,
            Stage::Programmed => view.relisted && view.programmed == Some(true),
        };
        let views = status.views.into_iter().filter(reached);
        let come: BTreeSet<_> =
            views.map(|view| (view.object, view.uid, view.generation, view.view)).collect();
        come == wanted && (stage == Stage::Known || status.proxy_connected)
    }
}
