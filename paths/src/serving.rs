//! Who serves a Service on a node, and how much of it the node sees.
//!
//! What counts is what the agents have acknowledged, not what the objects intend: until a node's
//! kube-proxy has received a narrower view, it serves everything.

use isp_api::age::by_age;
use isp_api::claims::{ServiceIdentity, claims};
use isp_api::names::{HEADLESS_LABEL, SERVICE_PROXY_NAME_LABEL};
use isp_api::node::{AcknowledgedView, AgentMode};
use isp_api::validate::NodeIdentity;
use isp_api::view::{ObjectView, View as Intended, view};
use isp_api::{IngressSourcePreserve, preserve::ServiceLabel};
use isp_dataplane::model::View;
use isp_plan::Key;
use kube::ResourceExt;

use crate::cluster::{Cluster, Service};

/// A server's view of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) view: View,
    /// Why the view is not the full one, or not yet the intended one.
    pub(crate) note: Option<String>,
}

impl Served {
    fn full() -> Self {
        Self { view: View::Full, note: None }
    }
}

/// What the kube-proxy of a node serves of a Service.
pub(crate) fn by_kube_proxy(cluster: &Cluster, node: &str, service: &Service) -> Served {
    let labels = &service.known.labels;
    for label in [SERVICE_PROXY_NAME_LABEL, HEADLESS_LABEL] {
        if labels.contains_key(label) {
            let why = Some(format!("kube-proxy skips the Service, because it has the label {label}"));
            return Served { view: View::Hidden, note: why };
        }
    }
    let Some(report) = cluster.report(node, AgentMode::Filter) else { return Served::full() };
    let has = |label: &ServiceLabel| labels.get(&label.key) == Some(&label.value);
    let mut found = Served::full();
    for object in views(cluster, node).into_iter().filter(|object| object.doubt.is_none()) {
        if !has(&object.label) {
            continue;
        }
        let acknowledged = acknowledged(&report.views, &object);
        let is_in_force = |view: &&AcknowledgedView| view.received && view.programmed != Some(false);
        match acknowledged.filter(is_in_force) {
            Some(acknowledged) if depth(acknowledged.view) > depth_of(found.view) => {
                let why = hiding(&object.object, acknowledged.view);
                found = Served { view: model(acknowledged.view), note: Some(why) };
            }
            None if object.view != Intended::Full && found.note.is_none() => {
                found.note = Some(format!(
                    "the agent has not acknowledged the view of IngressSourcePreserve {} yet, so kube-proxy may still \
                     serve everything",
                    object.object
                ));
            }
            _ => {}
        }
    }
    found
}

/// What the agent of mode Beside serves of a Service on a node. None: nothing.
pub(crate) fn by_agent(cluster: &Cluster, node: &str, key: &Key, service: &Service) -> Option<Served> {
    let report = cluster.report(node, AgentMode::Beside)?;
    let labels = &service.known.labels;
    let name = key.to_string();
    let mut decided: Option<Served> = None;
    for object in views(cluster, node) {
        let Some(acknowledged) = acknowledged(&report.views, &object) else { continue };
        let is_served = acknowledged.services.contains(&name) && acknowledged.programmed != Some(false);
        // An agent that reports a Service serves it, whether or not the status lists it.
        let Some(view) = object.served(labels, true).filter(|_| is_served) else { continue };
        if decided.as_ref().is_none_or(|known| depth(view) > depth_of(known.view)) {
            let why = (view != Intended::Full).then(|| hiding(&object.object, view));
            decided = Some(Served { view: model(view), note: why });
        }
    }
    let is_left_over = decided.is_none() && service.known.depends_on_agent && report.served.unwrap_or(0) > 0;
    decided.or_else(|| {
        let why = "no IngressSourcePreserve names it any more; the agents go on serving it".to_owned();
        (is_left_over && !has_owner(cluster, key, service))
            .then_some(Served { view: View::Full, note: Some(why) })
    })
}

/// The object that owns a Service.
pub(crate) fn owner<'a>(
    cluster: &'a Cluster,
    key: &Key,
    service: &Service,
) -> Option<&'a IngressSourcePreserve> {
    let objects = by_age(cluster.objects());
    let identity =
        ServiceIdentity { namespace: &key.namespace, name: &key.name, labels: &service.known.labels };
    let claims = claims(&objects, &[identity]);
    let place = claims.claimed.iter().position(|claimed| !claimed.services.is_empty())?;
    let name = objects.get(place)?.name_any();
    cluster.objects().iter().find(|object| object.name_any() == name)
}

fn has_owner(cluster: &Cluster, key: &Key, service: &Service) -> bool {
    owner(cluster, key, service).is_some()
}

/// Whether a node is an ingress node of an object.
pub(crate) fn is_ingress_node(cluster: &Cluster, node: &str, object: &IngressSourcePreserve) -> bool {
    let Some(facts) = cluster.nodes().get(node) else { return false };
    object.lists_ingress_node(node) || object.spec.ingress_nodes.contains(&facts.labels).unwrap_or(false)
}

fn views(cluster: &Cluster, node: &str) -> Vec<ObjectView> {
    let Some(facts) = cluster.nodes().get(node) else { return Vec::new() };
    view(NodeIdentity { name: node, labels: &facts.labels }, cluster.objects()).objects
}

fn acknowledged<'a>(views: &'a [AcknowledgedView], object: &ObjectView) -> Option<&'a AcknowledgedView> {
    views.iter().find(|view| view.object == object.object && view.uid == object.uid)
}

fn hiding(object: &str, view: Intended) -> String {
    let what = match view {
        Intended::Full => "nothing of the Service",
        Intended::ClusterOnly => "the external addresses of the Service",
        Intended::Hidden => "the Service",
    };
    format!("IngressSourcePreserve {object} hides {what} from this node")
}

fn model(view: Intended) -> View {
    match view {
        Intended::Full => View::Full,
        Intended::ClusterOnly => View::ClusterOnly,
        Intended::Hidden => View::Hidden,
    }
}

/// How narrow a view is.
fn depth(view: Intended) -> u8 {
    depth_of(model(view))
}

fn depth_of(view: View) -> u8 {
    match view {
        View::Full => 0,
        View::ClusterOnly => 1,
        View::Hidden => 2,
    }
}
