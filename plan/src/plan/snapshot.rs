//! Decides which object controls which Services and nodes. All other planning code asks here.
//!
//! Anyone who may edit a Service or a node can forge the operator's labels and annotations. An
//! object therefore counts as having changed a Service only if it claims the Service or its own
//! status, which only the operator may write, lists it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use isp_api::IngressSourcePreserve;
use isp_api::age::by_age;
use isp_api::claims::{ServiceIdentity, claims};
use isp_api::names::FINALIZER;
use isp_api::preserve::{ConflictPolicy, DeletionPolicy, Mode, ServiceLabel};
use isp_api::selector::BadSelector;
use isp_api::validate::{Clash, Conflict, NodeIdentity, conflicts};
use isp_api::view::View;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::{Settings, beside, checks, ingress, kube_proxy, rollout};
use crate::cluster::{Cluster, DaemonSet, Key, Node, Service};
use crate::observe::{HOME, made, recognised};
use crate::waits::{Clock, Waits};

/// The cluster, plus everything derived from the objects alone.
pub(super) struct Snapshot<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) settings: &'a Settings,
    pub(super) now: Timestamp,
    pub(super) clock: Clock<'a>,
    /// The DaemonSets created by the operator.
    pub(super) made: Vec<(&'a Key, &'a DaemonSet)>,
    /// The DaemonSets recognised as the cluster's kube-proxy.
    pub(super) kube_proxies: BTreeMap<&'a Key, &'a DaemonSet>,
    pub(super) nodes: Vec<(&'a str, &'a Node)>,
    /// For each node, whether no agent of mode Beside can run there.
    pub(super) unfit: Rc<Vec<bool>>,
    /// Sorted from oldest to newest.
    pub(super) objects: Vec<Object<'a>>,
    /// For each Service, the index in `objects` of the object that claims it.
    pub(super) claims: BTreeMap<&'a Key, usize>,
    /// Services that were changed for an object that no longer exists.
    pub(super) orphans: Vec<&'a Key>,
}

/// The deletion policy in effect for an object that is being deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deletion {
    Restore,
    Retain,
}

pub(super) struct Object<'a> {
    pub(super) written: &'a IngressSourcePreserve,
    pub(super) name: &'a str,
    pub(super) uid: &'a str,
    pub(super) generation: i64,
    pub(super) label: ServiceLabel,
    pub(super) deletion: Option<Deletion>,
    /// Whether the object has our finalizer.
    pub(super) held: bool,
    /// For each node, whether the object's selector makes it an ingress node.
    pub(super) selected: Rc<Vec<bool>>,
    /// For each node, whether it shows the object's Services in full: the nodes in `selected` and
    /// `kept`.
    pub(super) ingress: Rc<Vec<bool>>,
    /// Nodes that are no longer selected but are the last to serve one of the Services.
    pub(super) kept: Vec<usize>,
    /// How its agents work.
    pub(super) mode: Mode,
    /// Whether one of its Services still depends on the agents of mode Filter, although its mode is
    /// Beside: kube-proxies do not skip it yet.
    pub(super) keeps_filter: bool,
    /// Whether one of its Services depends on the agents of mode Beside, whatever its mode is:
    /// kube-proxies skip it, or skipped it not long ago.
    pub(super) keeps_beside: bool,
    /// For each node, whether it can have no agent and needs none: the cluster's kube-proxy never
    /// runs there, or, in mode Beside, the agent cannot run there.
    pub(super) left_out: Rc<Vec<bool>>,
    pub(super) bad_selector: Option<BadSelector>,
    /// Conflicts with older objects.
    pub(super) conflicts: Vec<Conflict>,
    /// Services that the object targets and no older object claims.
    pub(super) claimed: Vec<&'a Key>,
    /// Services that the object names but that do not exist.
    pub(super) missing: Vec<Key>,
    /// Services that were changed for this object.
    pub(super) touched: Vec<&'a Key>,
    /// Findings of step 1.
    pub(super) checks: Vec<checks::Finding>,
}

impl Object<'_> {
    /// Whether an older object uses the same label. If so, no node can apply this object's view.
    pub(super) fn label_is_taken(&self) -> bool {
        self.conflicts.iter().any(|conflict| matches!(conflict.clash, Clash::ServiceLabel(_)))
    }

    /// Whether the object's status lists the Service. Only then is the Service attributed to this
    /// object if the spec later stops selecting it.
    pub(super) fn lists(&self, key: &Key) -> bool {
        let listed = self.written.status.iter().flat_map(|status| &status.services);
        listed.into_iter().any(|known| known.namespace == key.namespace && known.name == key.name)
    }

    /// Whether fields that another manager has declared are overridden.
    pub(super) fn forces(&self) -> bool {
        self.written.spec.conflict_policy == ConflictPolicy::Force
    }

    /// Whether new changes may be started for this object.
    pub(super) fn may_begin(&self) -> bool {
        self.held
            && self.deletion.is_none()
            && self.bad_selector.is_none()
            && !self.label_is_taken()
            && (self.has_begun() || (self.checks.is_empty() && self.conflicts.is_empty()))
    }

    /// Whether Services were changed after the checks passed. A status with `ingressNodes` shows
    /// that they did pass.
    pub(super) fn has_begun(&self) -> bool {
        let listed = self.written.status.as_ref().and_then(|status| status.ingress_nodes.as_ref());
        listed.is_some() && !self.touched.is_empty()
    }

    /// Whether the object needs agents: it is not being deleted and its label is
    /// its own, it is being deleted with Retain, or one of its Services is still changed.
    fn counts(&self) -> bool {
        match self.deletion {
            None => !self.label_is_taken() || !self.touched.is_empty(),
            Some(Deletion::Restore) => !self.touched.is_empty(),
            Some(Deletion::Retain) => true,
        }
    }

    /// Whether the object's mode needs an agent on the node.
    pub(super) fn needs_agent(&self, node: usize) -> bool {
        let is = |list: &[bool]| list.get(node).copied().unwrap_or(false);
        rollout::needs_agent(self.mode, is(&self.ingress), is(&self.left_out))
    }

    /// Whether the object needs agents of mode Beside.
    pub(super) fn needs_beside(&self) -> bool {
        self.counts() && (self.mode == Mode::Beside || self.keeps_beside)
    }

    /// The view of the Services that the node should have.
    pub(super) fn view(&self, node: usize) -> View {
        let ingress = self.ingress.get(node).copied().unwrap_or(false);
        if ingress { View::Full } else { self.written.spec.elsewhere.into() }
    }

    /// Whether the object's pool of this name yields to that of an older object.
    pub(super) fn pool_gives_way(&self, pool: &str) -> bool {
        self.conflicts.iter().any(|conflict| match &conflict.clash {
            Clash::PoolDiffers { pool: name, .. } | Clash::PoolOverlaps { pool: name, .. } => name == pool,
            _ => false,
        })
    }
}

impl<'a> Snapshot<'a> {
    pub(super) fn new(
        cluster: &'a Cluster,
        settings: &'a Settings,
        waits: &'a Waits,
        now: Timestamp,
    ) -> Self {
        let nodes: Vec<_> = cluster.nodes.iter().map(|(name, node)| (name.as_str(), node)).collect();
        let aged = by_age(cluster.objects.values());
        let services = identities(cluster);
        let mut clashes = all_conflicts(cluster, &services, &nodes);
        let mut selected = Selected::default();
        let mut objects: Vec<Object<'a>> = aged
            .into_iter()
            .map(|object| new_object(object, settings, &nodes, &mut selected, &mut clashes))
            .collect();
        let claims = claim(cluster, &services, settings, &mut objects);
        let orphans = touch(cluster, settings, &claims, &mut objects);
        let mut left_out = kube_proxy::LeftOut::new(cluster, &nodes);
        let unfit = Rc::new(beside::unfit(&nodes));
        for object in &mut objects {
            object.left_out = match object.mode {
                Mode::Filter => left_out.of(object.written.spec.kube_proxy.as_ref()),
                Mode::Beside => Rc::clone(&unfit),
            };
            let touched = || object.touched.iter().filter_map(|key| cluster.services.get(*key));
            object.keeps_filter =
                object.mode == Mode::Beside && touched().any(|service| !service.is_taken_over());
            object.keeps_beside = touched().any(Service::depends_on_beside);
            ingress::keep(cluster, &nodes, object);
            object.checks = checks::check(cluster, object, &nodes);
        }
        let (clock, kube_proxies) = (Clock::new(waits, now), recognised(cluster));
        let made = made(cluster).collect();
        Self { cluster, settings, now, clock, made, kube_proxies, nodes, unfit, objects, claims, orphans }
    }

    /// Whether agents may run in the namespace.
    pub(super) fn is_home(&self, namespace: &str) -> bool {
        namespace == HOME || self.kube_proxies.keys().any(|key| key.namespace == namespace)
    }

    pub(super) fn service(&self, key: &Key) -> Option<&'a Service> {
        self.cluster.services.get(key)
    }

    /// The objects that need an agent of a pool on the node.
    pub(super) fn needing(&self, node: usize) -> impl Iterator<Item = &Object<'a>> {
        let has_pool = self.nodes.get(node).is_some_and(|(_, node)| node.pool.is_some());
        self.objects.iter().filter(move |object| {
            let needs_agent = object.needs_agent(node);
            object.counts() && rollout::needs_pool(object.mode, needs_agent, object.keeps_filter, has_pool)
        })
    }

    /// Whether the node must get or keep an agent of a pool.
    pub(super) fn needs_agent(&self, node: usize) -> bool {
        self.needing(node).next().is_some()
    }

    pub(super) fn nobody_needs_agents(&self) -> bool {
        !self.objects.iter().any(Object::counts)
    }

    /// Whether all Services changed for the object are marked as retained.
    pub(super) fn is_retained(&self, object: &Object<'_>) -> bool {
        let retained = |key: &&Key| {
            let record = self.service(key).and_then(|service| service.record.as_ref());
            record.is_some_and(|record| record.retained)
        };
        object.touched.iter().all(retained)
    }

    /// The number of ready endpoints of a Service on the object's ingress nodes.
    pub(super) fn ingress_endpoints(&self, object: &Object<'_>, service: &Key) -> u32 {
        checks::ingress_endpoints(self.cluster, object, &self.nodes, service)
    }
}

/// Cache: evaluates each distinct selector once, because there are few selectors and many nodes.
#[derive(Default)]
struct Selected(BTreeMap<String, (Rc<Vec<bool>>, Option<BadSelector>)>);

impl Selected {
    fn ingress_nodes(
        &mut self,
        object: &IngressSourcePreserve,
        nodes: &[(&str, &Node)],
    ) -> (Rc<Vec<bool>>, Option<BadSelector>) {
        let selector = &object.spec.ingress_nodes.selector;
        let known = serde_json::to_string(selector).unwrap_or_default();
        self.0
            .entry(known)
            .or_insert_with(|| match isp_api::selector::matcher(selector) {
                Ok(matcher) => {
                    use kube::core::SelectorExt;
                    let selected = nodes.iter().map(|(_, node)| matcher.matches(&node.labels)).collect();
                    (Rc::new(selected), None)
                }
                Err(bad) => (Rc::new(vec![false; nodes.len()]), Some(bad)),
            })
            .clone()
    }
}

/// In the order of the cluster's Services.
fn identities(cluster: &Cluster) -> Vec<ServiceIdentity<'_>> {
    cluster
        .services
        .iter()
        .map(|(key, service)| ServiceIdentity {
            namespace: &key.namespace,
            name: &key.name,
            labels: &service.labels,
        })
        .collect()
}

fn all_conflicts(
    cluster: &Cluster,
    services: &[ServiceIdentity<'_>],
    nodes: &[(&str, &Node)],
) -> BTreeMap<String, Vec<Conflict>> {
    let nodes: Vec<_> =
        nodes.iter().map(|(name, node)| NodeIdentity { name, labels: &node.labels }).collect();
    let mut by_object: BTreeMap<String, Vec<Conflict>> = BTreeMap::new();
    for conflict in conflicts(cluster.objects.values(), services, &nodes) {
        by_object.entry(conflict.object.clone()).or_default().push(conflict);
    }
    by_object
}

fn new_object<'a>(
    object: &'a IngressSourcePreserve,
    settings: &Settings,
    nodes: &[(&str, &Node)],
    selected: &mut Selected,
    conflicts: &mut BTreeMap<String, Vec<Conflict>>,
) -> Object<'a> {
    let metadata = &object.metadata;
    let (selected, bad_selector) = selected.ingress_nodes(object, nodes);
    let name = metadata.name.as_deref().unwrap_or_default();
    let deletion = match object.spec.deletion_policy {
        _ if settings.cleanup => Some(Deletion::Restore),
        _ if metadata.deletion_timestamp.is_none() => None,
        DeletionPolicy::Restore => Some(Deletion::Restore),
        DeletionPolicy::Retain => Some(Deletion::Retain),
    };
    Object {
        written: object,
        name,
        uid: metadata.uid.as_deref().unwrap_or_default(),
        generation: metadata.generation.unwrap_or_default(),
        label: object.service_label(),
        deletion,
        held: object.finalizers().iter().any(|finalizer| finalizer == FINALIZER),
        ingress: selected.clone(),
        selected,
        kept: Vec::new(),
        mode: object.spec.mode,
        keeps_filter: false,
        keeps_beside: false,
        left_out: Rc::default(),
        bad_selector,
        conflicts: conflicts.remove(name).unwrap_or_default(),
        claimed: Vec::new(),
        missing: Vec::new(),
        touched: Vec::new(),
        checks: Vec::new(),
    }
}

/// Assigns each Service to the object that owns it. During cleanup, nothing is claimed.
fn claim<'a>(
    cluster: &'a Cluster,
    services: &[ServiceIdentity<'a>],
    settings: &Settings,
    objects: &mut [Object<'a>],
) -> BTreeMap<&'a Key, usize> {
    let mut owners = BTreeMap::new();
    if settings.cleanup {
        return owners;
    }
    let written: Vec<_> = objects.iter().map(|object| object.written).collect();
    let keys: Vec<&Key> = cluster.services.keys().collect();
    for (place, claimed) in claims(&written, services).claimed.into_iter().enumerate() {
        let object = &mut objects[place];
        object.claimed = claimed.services.into_iter().map(|index| keys[index]).collect();
        object.missing =
            claimed.missing.into_iter().map(|(namespace, name)| Key::new(namespace, name)).collect();
        owners.extend(object.claimed.iter().map(|key| (*key, place)));
    }
    owners
}

/// Finds the Services that were changed for each object, by the record annotation or by a label
/// that the operator's field manager owns. The object must claim the Service or list it in its
/// status. Returns the remaining changed Services, whose object no longer exists.
fn touch<'a>(
    cluster: &'a Cluster,
    settings: &Settings,
    claims: &BTreeMap<&'a Key, usize>,
    objects: &mut [Object<'a>],
) -> Vec<&'a Key> {
    let names: BTreeMap<&str, usize> =
        objects.iter().enumerate().map(|(place, object)| (object.name, place)).collect();
    let labels: BTreeMap<ServiceLabel, usize> =
        objects.iter().enumerate().rev().map(|(place, object)| (object.label.clone(), place)).collect();
    let mut orphans = BTreeSet::new();
    for (key, service) in &cluster.services {
        let by_record = service.record.as_ref().and_then(|record| names.get(record.object.as_str()));
        let Some(ours) = service.owners.iter().find(|owner| owner.is_us()) else {
            // managedFields were emptied, or the Service was recreated from a copy. The object's
            // status still lists it.
            let kept = service.record.as_ref().is_some_and(|record| record.retained);
            let Some(place) = by_record.filter(|_| !kept) else { continue };
            let object = &mut objects[*place];
            let labelled = service.labels.get(&object.label.key) == Some(&object.label.value);
            if object.lists(key) {
                object.touched.push(key);
            } else if labelled && claims.get(key).is_some_and(|owner| owner != place) {
                // Another object has it now, but may wait; the label would go on hiding it.
                orphans.insert(key);
            }
            continue;
        };
        let by_label = || {
            let mut labels_of_ours = ours.labels.iter().filter_map(|key| {
                let value = service.labels.get(key)?.clone();
                labels.get(&ServiceLabel { key: key.clone(), value })
            });
            labels_of_ours.next()
        };
        let known = |place: &&usize| claims.get(key) == Some(*place) || objects[**place].lists(key);
        let retained = service.record.as_ref().is_some_and(|record| record.retained) && !settings.cleanup;
        match by_record.or_else(by_label).filter(known) {
            Some(place) => objects[*place].touched.push(key),
            None if retained => {}
            None => {
                orphans.insert(key);
            }
        }
    }
    orphans.into_iter().collect()
}
