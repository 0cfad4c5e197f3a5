//! Simulates the API server's handling of the operator's writes, as far as the facts show it:
//! values and their owners.

use isp_api::names::{
    AGENT_IMAGES_LABEL, AGENT_POOL_LABEL, AGENT_REVISION_LABEL, FINALIZER, OPERATOR_FIELD_MANAGER,
    PROXY_NAME, SERVICE_PROXY_NAME_LABEL,
};
use isp_api::preserve::{ServiceLabel, TrafficPolicy};
use k8s_openapi::api::apps::v1::DaemonSet as DaemonSetObject;
use k8s_openapi::api::core::v1::{Affinity, NodeAffinity, NodeSelector, NodeSelectorTerm};
use serde_json::Value;

use super::Simulation;
use crate::action::{Action, NodeShape, Returned, Shape};
use crate::cluster::{DaemonSet, Identity, Key, Node, Service, Written};
use crate::observe;
use crate::own::content;
use crate::ownership::{BEFORE_FIRST_APPLY, Owner};
use crate::record::OriginalLabel;

/// An arbitrary port.
const HEALTH_CHECK_PORT: i32 = 30000;

impl Simulation {
    /// Executes a write. Returns whether it was accepted.
    pub fn carry_out(&mut self, action: &Action) -> bool {
        self.accept(action).is_some()
    }

    /// None if the object does not exist or its precondition fails.
    fn accept(&mut self, action: &Action) -> Option<()> {
        match action {
            Action::Finalizer { object, identity, held } => self.set_finalizer(object, identity, *held),
            Action::Status { object, uid, status } => {
                let version = self.version();
                let found = self.cluster.objects.get_mut(object);
                let found = found.filter(|found| found.metadata.uid.as_ref() == Some(uid))?;
                found.status = Some((**status).clone());
                found.metadata.resource_version = Some(version);
                Some(())
            }
            Action::ShapeService { service, identity, shape, .. } => {
                shape_service(self.service_of(service, identity)?, shape);
                Some(())
            }
            Action::ReturnFields { service, identity, owner, fields } => {
                return_fields(self.service_of(service, identity)?, owner, fields);
                Some(())
            }
            Action::ShapeNode { node, identity, shape, .. } => {
                let version = self.version();
                let found = self.cluster.nodes.get_mut(node).filter(|found| found.identity == *identity)?;
                found.identity.version = version;
                shape_node(found, shape);
                Some(())
            }
            Action::KeepOff { daemon_set, identity, terms, record } => {
                let found = self.daemon_set(daemon_set, identity)?;
                found.owners.clear();
                found.owners.push(Owner {
                    manager: OPERATOR_FIELD_MANAGER.to_owned(),
                    applies: true,
                    field: true,
                    ..Owner::default()
                });
                found.record = Some((**record).clone());
                set_terms(&mut found.object, terms.clone());
                Some(())
            }
            Action::ReturnTerms { daemon_set, identity, owner, terms } => {
                let found = self.daemon_set(daemon_set, identity)?;
                found.owners.retain(|owner| !owner.is_us());
                found.owners.push(Owner { manager: owner.clone(), field: true, ..Owner::default() });
                found.record = None;
                set_terms(&mut found.object, terms.clone());
                Some(())
            }
            Action::ReleaseKubeProxy { daemon_set, identity } => {
                let found = self.daemon_set(daemon_set, identity)?;
                if found.owners.iter().any(|owner| owner.is_us() && owner.field) {
                    set_terms(&mut found.object, Vec::new());
                }
                // Apply removes only fields that its manager owns.
                if found.owners.iter().any(Owner::is_us) {
                    found.record = None;
                }
                found.owners.retain(|owner| !owner.is_us());
                Some(())
            }
            Action::ApplyPool { daemon_set, .. } => {
                let key = observe::key(&daemon_set.metadata);
                let (identity, object) = (self.identity(), DaemonSetObject::clone(daemon_set));
                let set = DaemonSet { identity, object, made: true, ..DaemonSet::default() };
                self.cluster.daemon_sets.insert(key, set);
                Some(())
            }
            Action::DeletePool { daemon_set, identity } => {
                self.daemon_set(daemon_set, identity)?;
                self.cluster.daemon_sets.remove(daemon_set).map(drop)
            }
            Action::Forget { report, identity } => {
                self.cluster.reports.get(report).filter(|report| report.identity == *identity)?;
                self.cluster.reports.remove(report).map(drop)
            }
            Action::ApplyOwn { kind, key, object } => {
                let version = self.version();
                let known = self.cluster.own.entry(*kind).or_default();
                let before = known.get(key).map(|known| known.identity.uid.clone());
                let uid = before.unwrap_or_else(|| format!("uid-{version}"));
                let (identity, content) = (Identity { uid, version }, content(Value::clone(object)));
                known.insert(key.clone(), Written { identity, ours: true, deleting: false, content });
                Some(())
            }
            Action::DeleteOwn { kind, key, identity } => {
                let known = self.cluster.own.entry(*kind).or_default();
                known.get(key).filter(|known| known.identity == *identity)?;
                known.remove(key).map(drop)
            }
        }
    }

    fn set_finalizer(&mut self, object: &str, identity: &Identity, held: bool) -> Option<()> {
        let version = self.version();
        let found = self.cluster.objects.get_mut(object);
        let found =
            found.filter(|found| found.metadata.resource_version.as_ref() == Some(&identity.version))?;
        found.metadata.resource_version = Some(version);
        let finalizers = found.metadata.finalizers.get_or_insert_default();
        finalizers.retain(|finalizer| finalizer != FINALIZER);
        finalizers.extend(held.then(|| FINALIZER.to_owned()));
        let free = finalizers.is_empty();
        if free {
            found.metadata.finalizers = None;
        }
        if free && found.metadata.deletion_timestamp.is_some() {
            self.cluster.objects.remove(object);
        }
        Some(())
    }

    fn service_of(&mut self, key: &Key, identity: &Identity) -> Option<&mut Service> {
        let version = self.version();
        let found = self.cluster.services.get_mut(key).filter(|service| service.identity == *identity)?;
        found.identity.version = version;
        Some(found)
    }

    fn daemon_set(&mut self, key: &Key, identity: &Identity) -> Option<&mut DaemonSet> {
        let version = self.version();
        let found = self.cluster.daemon_sets.get_mut(key).filter(|set| set.identity == *identity)?;
        found.identity.version = version;
        Some(found)
    }
}

fn return_fields(service: &mut Service, owner: &str, fields: &Returned) {
    match fields {
        Returned::Policy => write_policy(service, owner, false, TrafficPolicy::Cluster),
        Returned::Label(OriginalLabel { key, value, .. }) => set_label(service, owner, key, Some(value)),
        Returned::ToKubeProxy => set_label(service, owner, SERVICE_PROXY_NAME_LABEL, None),
        Returned::Everything { policy, label } => {
            service.record = None;
            if let Some((key, before)) = label {
                set_label(service, owner, key, before.as_deref());
            }
            if *policy {
                write_policy(service, owner, false, TrafficPolicy::Cluster);
            }
        }
    }
}

/// Sets the label, owned by this manager alone, or removes it.
fn set_label(service: &mut Service, owner: &str, key: &str, value: Option<&str>) {
    service.owners.iter_mut().for_each(|owner| {
        owner.labels.remove(key);
    });
    match value {
        Some(value) => {
            owner_entry(service, owner, false).labels.insert(key.to_owned());
            service.labels.insert(key.to_owned(), value.to_owned());
        }
        None => drop(service.labels.remove(key)),
    }
}

fn shape_node(node: &mut Node, shape: &NodeShape) {
    node.pool.clone_from(&shape.pool);
    node.revision.clone_from(&shape.revision);
    node.images.clone_from(&shape.images);
    node.handover.clone_from(&shape.handover);
    node.failure.clone_from(&shape.failure);
    for (key, value) in [
        (AGENT_POOL_LABEL, &shape.pool),
        (AGENT_REVISION_LABEL, &shape.revision),
        (AGENT_IMAGES_LABEL, &shape.images),
    ] {
        match value {
            Some(value) => drop(node.labels.insert(key.to_owned(), value.clone())),
            None => drop(node.labels.remove(key)),
        }
    }
}

fn owner_entry<'a>(service: &'a mut Service, manager: &str, applies: bool) -> &'a mut Owner {
    let place = service.owners.iter().position(|owner| owner.manager == manager && owner.applies == applies);
    let place = place.unwrap_or_else(|| {
        service.owners.push(Owner { manager: manager.to_owned(), applies, ..Owner::default() });
        service.owners.len() - 1
    });
    &mut service.owners[place]
}

/// Writes the policy. A manager that changes the value becomes its sole owner.
pub(crate) fn write_policy(service: &mut Service, manager: &str, applies: bool, policy: TrafficPolicy) {
    if service.policy != Some(policy) {
        service.owners.iter_mut().for_each(|owner| owner.field = false);
        service.policy = Some(policy);
        owner_entry(service, manager, applies).field = true;
    } else if applies {
        owner_entry(service, manager, applies).field = true;
    }
    service.health_check_node_port =
        (policy == TrafficPolicy::Local && service.balanced).then_some(HEALTH_CHECK_PORT);
    service.owners.retain(|owner| owner.field || !owner.labels.is_empty() || owner.is_us());
}

fn shape_service(service: &mut Service, shape: &Shape) {
    let owned = service.owners.iter().any(Owner::is_us);
    if service.owners.is_empty() {
        let labels = service.labels.keys().cloned().collect();
        let (manager, field) = (BEFORE_FIRST_APPLY.to_owned(), service.policy.is_some());
        service.owners.push(Owner { manager, field, labels, ..Owner::default() });
    }
    let us = owner_entry(service, OPERATOR_FIELD_MANAGER, true);
    let (had_field, had_labels) = (us.field, std::mem::take(&mut us.labels));
    us.field = false;
    let proxy = ServiceLabel { key: SERVICE_PROXY_NAME_LABEL.to_owned(), value: PROXY_NAME.to_owned() };
    for ServiceLabel { key, value } in shape.label.iter().chain(shape.taken_over.then_some(&proxy)) {
        if service.labels.get(key) != Some(value) {
            service.owners.iter_mut().for_each(|owner| {
                owner.labels.remove(key);
            });
        }
        service.labels.insert(key.clone(), value.clone());
        owner_entry(service, OPERATOR_FIELD_MANAGER, true).labels.insert(key.clone());
    }
    for key in had_labels {
        if !service.owners.iter().any(|owner| owner.labels.contains(&key)) {
            service.labels.remove(&key);
        }
    }
    if shape.local {
        write_policy(service, OPERATOR_FIELD_MANAGER, true, TrafficPolicy::Local);
    } else if had_field && !service.owners.iter().any(|owner| owner.field) {
        service.policy = Some(TrafficPolicy::Cluster);
        service.health_check_node_port = None;
    }
    // Apply removes only fields that its manager owns.
    if owned || shape.record.is_some() {
        service.record.clone_from(&shape.record);
    }
    if *shape == Shape::default() {
        service.owners.retain(|owner| !owner.is_us());
    }
}

/// Sets the required node affinity of a DaemonSet's pods; removes it without terms. Other
/// affinities are kept.
pub(crate) fn set_terms(set: &mut DaemonSetObject, terms: Vec<NodeSelectorTerm>) {
    let generation = set.metadata.generation.get_or_insert_default();
    *generation = generation.saturating_add(1);
    let Some(pod) = set.spec.template.spec.as_mut() else { return };
    let mut affinity = pod.affinity.take().unwrap_or_default();
    let mut of_nodes = affinity.node_affinity.take().unwrap_or_default();
    of_nodes.required_during_scheduling_ignored_during_execution =
        (!terms.is_empty()).then_some(NodeSelector { node_selector_terms: terms });
    affinity.node_affinity = (of_nodes != NodeAffinity::default()).then_some(of_nodes);
    pod.affinity = (affinity != Affinity::default()).then_some(affinity);
}
