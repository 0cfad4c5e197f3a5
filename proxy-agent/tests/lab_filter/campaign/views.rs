//! Changes the node's view: creates, changes and deletes objects, and makes the node an ingress
//! node and back.

use std::collections::{BTreeMap, BTreeSet};

use isp_api::names::SERVICE_LABEL;
use isp_api::node::AcknowledgedView;
use isp_api::view::{NodeView, View, view};
use isp_api::{IngressSourceNode, IngressSourcePreserve};
use isp_testkit::churn::{Setting, insist};
use isp_testkit::random::Random;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use crate::harness::NODE;

const INGRESS: &str = "churn.example/ingress";
const OWN_KEY: &str = "churn.example/preserve";

/// The possible objects, and the key of their label. The first two always exist, and every change
/// of the node's role changes the view of at least one of them.
pub(super) const OBJECTS: [(&str, &str); 6] = [
    ("steady-a", SERVICE_LABEL),
    ("steady-b", SERVICE_LABEL),
    ("view-1", SERVICE_LABEL),
    ("view-2", SERVICE_LABEL),
    ("view-3", OWN_KEY),
    ("view-4", OWN_KEY),
];

/// What the Services are about.
pub(super) const SETTING: Setting = Setting {
    node: NODE,
    labels: &[
        (SERVICE_LABEL, "steady-a"),
        (SERVICE_LABEL, "steady-b"),
        (SERVICE_LABEL, "view-1"),
        (SERVICE_LABEL, "view-2"),
        (OWN_KEY, "view-3"),
        (OWN_KEY, "view-4"),
    ],
};

/// The stage that a change has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The agent knows it.
    Known,
    /// kube-proxy has received all of it.
    Relisted,
    /// The kernel has it.
    Programmed,
}

/// The spec of an object.
#[derive(Debug, Clone, Copy)]
struct ObjectSpec {
    hidden: bool,
    /// The label value of its ingress nodes.
    ingress: &'static str,
    /// A field that no view depends on.
    services: usize,
}

/// The objects and the node, as they were written.
pub(super) struct Views {
    objects: Api<IngressSourcePreserve>,
    nodes: Api<Node>,
    acknowledged: Api<IngressSourceNode>,
    random: Random,
    specs: BTreeMap<&'static str, ObjectSpec>,
    written: BTreeMap<&'static str, IngressSourcePreserve>,
    node_labels: BTreeMap<String, String>,
    /// How many changes were visible to kube-proxy, and how many were not.
    pub(super) real: u64,
    pub(super) void: u64,
}

impl Views {
    /// Creates the two objects that always exist.
    pub(super) async fn new(client: &Client, random: Random) -> Self {
        let mut views = Self {
            objects: Api::all(client.clone()),
            nodes: Api::all(client.clone()),
            acknowledged: Api::all(client.clone()),
            random,
            specs: BTreeMap::new(),
            written: BTreeMap::new(),
            node_labels: BTreeMap::new(),
            real: 0,
            void: 0,
        };
        views.label_node(INGRESS, None).await;
        for (object, ingress) in [("steady-a", "a"), ("steady-b", "b")] {
            views.write(object, ObjectSpec { hidden: object == "steady-a", ingress, services: 1 }).await;
        }
        views
    }

    /// Returns the view of the node.
    pub(super) fn view(&self) -> NodeView {
        view(isp_api::validate::NodeIdentity { name: NODE, labels: &self.node_labels }, self.written.values())
    }

    /// Returns the view of each object's Services, including objects that do not exist.
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
        let spec = self.specs.get(object).copied();
        match (self.random.below(100), spec) {
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
                self.write(object, ObjectSpec { hidden, ingress, services: 1 }).await;
            }
            (20..40, Some(_)) if !stays => self.delete(object).await,
            (20..50, Some(spec)) if !stays => {
                let ingress = if spec.ingress == "a" { "b" } else { "a" };
                self.write(object, ObjectSpec { ingress, ..spec }).await;
            }
            (90.., Some(spec)) => {
                self.write(object, ObjectSpec { services: spec.services % 4 + 1, ..spec }).await;
            }
            (_, Some(spec)) => self.write(object, ObjectSpec { hidden: !spec.hidden, ..spec }).await,
        }
    }

    async fn write(&mut self, name: &'static str, spec: ObjectSpec) {
        let key = OBJECTS.iter().find(|(object, _)| *object == name).unwrap().1;
        let services: Vec<_> = (0..spec.services)
            .map(|number| json!({"namespace": "default", "name": format!("churn-{number}")}))
            .collect();
        let object = json!({
            "apiVersion": "sourcepreserve.io/v1alpha1",
            "kind": "IngressSourcePreserve",
            "metadata": {"name": name},
            "spec": {
                "ingressNodes": {"selector": {"matchLabels": {INGRESS: spec.ingress}}},
                "services": services,
                "serviceLabel": {"key": key},
                "elsewhere": if spec.hidden { "Hidden" } else { "ClusterOnly" },
            },
        });
        let apply = PatchParams::apply("campaign").force();
        let patch = Patch::Apply(object);
        let written = insist(async || self.objects.patch(name, &apply, &patch).await).await.unwrap();
        self.specs.insert(name, spec);
        self.written.insert(name, written);
    }

    async fn delete(&mut self, name: &'static str) {
        let result = insist(async || self.objects.delete(name, &DeleteParams::default()).await).await;
        assert!(matches!(&result, Ok(_) | Err(kube::Error::Api(_))), "{result:?}");
        self.specs.remove(name);
        self.written.remove(name);
    }

    async fn label_node(&mut self, key: &str, value: Option<&str>) {
        let patch = Patch::Merge(json!({"metadata": {"labels": {key: value}}}));
        let written =
            insist(async || self.nodes.patch(NODE, &PatchParams::default(), &patch).await).await.unwrap();
        self.node_labels = written.labels().clone();
    }

    /// Says whether the agent reports this stage for every change.
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
            Stage::Relisted => view.received,
            Stage::Programmed => view.received && view.programmed == Some(true),
        };
        let views = status.views.into_iter().filter(reached);
        let come: BTreeSet<_> =
            views.map(|view| (view.object, view.uid, view.generation, view.view)).collect();
        come == wanted && (stage == Stage::Known || status.active)
    }
}
