//! A model of a cluster that does what the API server, the DaemonSet controller and the agents do with what the operator
//! writes. It has no order of its own: a test decides who acts next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use isp_api::IngressSourcePreserve;
use isp_api::names::{AGENT_NAME, AGENT_POOL_LABEL, FINALIZER, OPERATOR_FIELD_MANAGER};
use isp_api::preserve::{ServiceLabel, TrafficPolicy};
use k8s_openapi::api::apps::v1::DaemonSet as DaemonSetObject;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::action::{Action, AdmissionKind, Returned, Shape};
use crate::cluster::{Cluster, DaemonSet, Identity, Key, Node, Pod, Report, Service, Written};
use crate::observe;
use crate::ownership::Owner;
use crate::plan::{Plan, Settings, plan};

pub(super) const INGRESS: &str = "ingress";

pub(super) struct World {
    pub(super) cluster: Cluster,
    pub(super) settings: Settings,
    pub(super) now: Timestamp,
    /// Nodes on which no agent starts.
    pub(super) broken: BTreeSet<String>,
    /// Nodes on which the cluster's kube-proxy does not end.
    pub(super) lingering: BTreeSet<String>,
    counter: u64,
}

pub(super) fn kube_proxy() -> DaemonSetObject {
    serde_json::from_value(json!({
        "metadata": {"name": "kube-proxy", "namespace": "kube-system", "labels": {"k8s-app": "kube-proxy"}},
        "spec": {
            "selector": {"matchLabels": {"k8s-app": "kube-proxy"}},
            "template": {
                "metadata": {"labels": {"k8s-app": "kube-proxy"}},
                "spec": {
                    "containers": [{
                        "name": "kube-proxy",
                        "image": "kube-proxy:1",
                        "command": ["/usr/local/bin/kube-proxy", "--config=/var/lib/kube-proxy/config.conf"],
                        "volumeMounts": [{"name": "config", "mountPath": "/var/lib/kube-proxy"}],
                    }],
                    "volumes": [{"name": "config", "configMap": {"name": "kube-proxy"}}],
                },
            },
        },
    }))
    .unwrap()
}

impl World {
    /// A cluster with kube-proxy and these nodes.
    pub(super) fn new(nodes: &[(&str, &[(&str, &str)])]) -> Self {
        let mut this = Self {
            cluster: Cluster::default(),
            settings: Settings {
                agent_image: "agent:1".to_owned(),
                namespace: "sourcepreserve-system".to_owned(),
                cleanup: false,
            },
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            broken: BTreeSet::new(),
            lingering: BTreeSet::new(),
            counter: 0,
        };
        let identity = this.identity();
        let set = observe::daemon_set(&kube_proxy()).unwrap();
        this.cluster.daemon_sets.insert(Self::kube_proxy_key(), DaemonSet { identity, ..set });
        let files = [("config.conf".to_owned(), "/var/lib/kube-proxy/kubeconfig.conf".to_owned())].into();
        this.cluster.configurations.insert(Self::kube_proxy_key(), files);
        for (name, labels) in nodes {
            this.add_node(name, labels);
        }
        this.controllers();
        this
    }

    pub(super) fn kube_proxy_key() -> Key {
        Key::new("kube-system", "kube-proxy")
    }

    fn identity(&mut self) -> Identity {
        self.counter += 1;
        Identity { uid: format!("uid-{}", self.counter), version: self.counter.to_string() }
    }

    fn version(&mut self) -> String {
        self.counter += 1;
        self.counter.to_string()
    }

    pub(super) fn add_node(&mut self, name: &str, labels: &[(&str, &str)]) {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let identity = self.identity();
        self.cluster.nodes.insert(name.to_owned(), Node { identity, labels, ready: true, ..Node::default() });
    }

    pub(super) fn remove_node(&mut self, name: &str) {
        self.cluster.nodes.remove(name);
        self.cluster.pods.retain(|_, pod| pod.node != name);
        for slices in self.cluster.endpoints.values_mut() {
            for nodes in slices.values_mut() {
                nodes.remove(name);
            }
        }
    }

    pub(super) fn node(&mut self, name: &str, change: impl FnOnce(&mut Node)) {
        let version = self.version();
        if let Some(node) = self.cluster.nodes.get_mut(name) {
            change(node);
            node.identity.version = version;
        }
    }

    /// A Service as an update creates it: its writer owns the defaults.
    pub(super) fn add_service(&mut self, key: &Key, writer: &str) {
        let identity = self.identity();
        let owner = Owner { manager: writer.to_owned(), field: true, ..Owner::default() };
        self.cluster.services.insert(
            key.clone(),
            Service {
                identity,
                exposed: true,
                balanced: true,
                policy: Some(TrafficPolicy::Cluster),
                owners: vec![owner],
                ..Service::default()
            },
        );
    }

    pub(super) fn service(&mut self, key: &Key, change: impl FnOnce(&mut Service)) {
        let version = self.version();
        if let Some(service) = self.cluster.services.get_mut(key) {
            change(service);
            service.identity.version = version;
        }
    }

    /// Somebody writes the policy by a plain update.
    pub(super) fn update_policy(&mut self, key: &Key, writer: &str, policy: TrafficPolicy) {
        self.service(key, |service| write_policy(service, writer, false, policy));
    }

    /// Somebody declares the policy, by force.
    pub(super) fn declare_policy(&mut self, key: &Key, writer: &str, policy: TrafficPolicy) {
        self.service(key, |service| write_policy(service, writer, true, policy));
    }

    pub(super) fn set_endpoints(&mut self, key: &Key, node: &str, count: u32) {
        let slice =
            self.cluster.endpoints.entry(key.clone()).or_default().entry("slice".to_owned()).or_default();
        if count == 0 {
            slice.remove(node);
        } else {
            slice.insert(node.to_owned(), count);
        }
    }

    pub(super) fn add_object(&mut self, name: &str, spec: &serde_json::Value) {
        let identity = self.identity();
        let mut object: IngressSourcePreserve = serde_json::from_value(json!({
            "apiVersion": "sourcepreserve.io/v1alpha1",
            "kind": "IngressSourcePreserve",
            "metadata": {"name": name, "uid": identity.uid, "generation": 1},
            "spec": spec,
        }))
        .unwrap();
        object.metadata.creation_timestamp =
            Some(Time(self.now + SignedDuration::from_micros(self.counter.cast_signed())));
        object.metadata.resource_version = Some(identity.version);
        self.cluster.objects.insert(name.to_owned(), object);
    }

    pub(super) fn object(&mut self, name: &str, change: impl FnOnce(&mut IngressSourcePreserve)) {
        let version = self.version();
        if let Some(object) = self.cluster.objects.get_mut(name) {
            change(object);
            object.metadata.resource_version = Some(version);
            object.metadata.generation = object.metadata.generation.map(|generation| generation + 1);
        }
    }

    pub(super) fn delete_object(&mut self, name: &str) {
        let now = self.now;
        let held = self.cluster.objects.get(name).is_some_and(|object| object.metadata.finalizers.is_some());
        if held {
            self.object(name, |object| {
                object.metadata.deletion_timestamp.get_or_insert(Time(now));
            });
        } else {
            self.cluster.objects.remove(name);
        }
    }

    pub(super) fn plan(&self) -> Plan {
        plan(&self.cluster, &self.settings, self.now)
    }

    /// What the API server does with the write. Whether it was accepted.
    #[allow(clippy::too_many_lines, reason = "one arm for each kind of action")]
    pub(super) fn carry_out(&mut self, action: &Action) -> bool {
        let version = self.version();
        match action {
            Action::Finalizer { object, identity, held } => {
                let Some(found) = self.cluster.objects.get_mut(object) else { return false };
                if found.metadata.resource_version.as_ref() != Some(&identity.version) {
                    return false;
                }
                found.metadata.resource_version = Some(version);
                found.metadata.finalizers = held.then(|| vec![FINALIZER.to_owned()]);
                if !held && found.metadata.deletion_timestamp.is_some() {
                    self.cluster.objects.remove(object);
                }
            }
            Action::Status { object, uid, status } => {
                let Some(found) = self.cluster.objects.get_mut(object) else { return false };
                if found.metadata.uid.as_ref() != Some(uid) {
                    return false;
                }
                found.status = Some((**status).clone());
                found.metadata.resource_version = Some(version);
            }
            Action::ShapeService { service, identity, shape, .. } => {
                let Some(found) = self.cluster.services.get_mut(service) else { return false };
                if found.identity != *identity {
                    return false;
                }
                found.identity.version = version;
                shape_service(found, shape);
            }
            Action::ReturnFields { service, identity, owner, fields } => {
                let Some(found) = self.cluster.services.get_mut(service) else { return false };
                if found.identity != *identity {
                    return false;
                }
                found.identity.version = version;
                match fields {
                    Returned::Policy => write_policy(found, owner, false, TrafficPolicy::Cluster),
                    Returned::Label(label) => {
                        found.owners.iter_mut().for_each(|owner| {
                            owner.labels.remove(&label.key);
                        });
                        owner_entry(found, owner, false).labels.insert(label.key.clone());
                        found.labels.insert(label.key.clone(), label.value.clone());
                    }
                }
            }
            Action::ShapeNode { node, identity, shape, .. } => {
                let Some(found) = self.cluster.nodes.get_mut(node) else { return false };
                if found.identity != *identity {
                    return false;
                }
                found.identity.version = version;
                found.pool.clone_from(&shape.pool);
                found.handover.clone_from(&shape.handover);
                found.failure.clone_from(&shape.failure);
                match &shape.pool {
                    Some(pool) => drop(found.labels.insert(AGENT_POOL_LABEL.to_owned(), pool.clone())),
                    None => drop(found.labels.remove(AGENT_POOL_LABEL)),
                }
            }
            Action::KeepOff { daemon_set, identity, terms, record } => {
                let Some(found) = self.daemon_set(daemon_set, identity, version) else { return false };
                found.owners.clear();
                found.owners.push(Owner {
                    manager: OPERATOR_FIELD_MANAGER.to_owned(),
                    applies: true,
                    field: true,
                    labels: BTreeSet::new(),
                });
                found.record = Some((**record).clone());
                set_terms(&mut found.object, &json!(terms));
            }
            Action::ReturnTerms { daemon_set, identity, owner, terms } => {
                let Some(found) = self.daemon_set(daemon_set, identity, version) else { return false };
                found.owners.retain(|owner| !owner.is_us());
                found.owners.push(Owner { manager: owner.clone(), field: true, ..Owner::default() });
                set_terms(&mut found.object, &json!(terms));
            }
            Action::ReleaseKubeProxy { daemon_set, identity } => {
                let Some(found) = self.daemon_set(daemon_set, identity, version) else { return false };
                if found.owners.iter().any(|owner| owner.is_us() && owner.field) {
                    set_terms(&mut found.object, &json!(null));
                }
                found.owners.retain(|owner| !owner.is_us());
                found.record = None;
            }
            Action::ApplyPool { daemon_set, .. } => {
                let key = observe::key(&daemon_set.metadata);
                let identity = self.identity();
                let set = observe::daemon_set(daemon_set).unwrap();
                self.cluster.daemon_sets.insert(key, DaemonSet { identity, ..set });
            }
            Action::DeletePool { daemon_set, identity } => {
                if self.daemon_set(daemon_set, identity, version).is_none() {
                    return false;
                }
                self.cluster.daemon_sets.remove(daemon_set);
            }
            Action::Forget { node, identity } => {
                if self.cluster.reports.get(node).is_none_or(|report| report.identity != *identity) {
                    return false;
                }
                self.cluster.reports.remove(node);
            }
            Action::ApplyAdmission { kind, name, object } => {
                let says =
                    if *kind == AdmissionKind::Webhook { &object["webhooks"] } else { &object["spec"] };
                let known = self.admission(*kind);
                let uid = known
                    .get(name)
                    .map_or_else(|| format!("uid-{version}"), |known| known.identity.uid.clone());
                known.insert(
                    name.clone(),
                    Written { identity: Identity { uid, version }, content: says.clone() },
                );
            }
            Action::DeleteAdmission { kind, name, identity } => {
                let known = self.admission(*kind);
                if known.get(name).is_none_or(|known| known.identity != *identity) {
                    return false;
                }
                known.remove(name);
            }
        }
        true
    }

    fn admission(&mut self, kind: AdmissionKind) -> &mut BTreeMap<String, Written> {
        let admission = &mut self.cluster.admission;
        match kind {
            AdmissionKind::Webhook => &mut admission.webhooks,
            AdmissionKind::Policy => &mut admission.policies,
            AdmissionKind::Binding => &mut admission.bindings,
        }
    }

    fn daemon_set(&mut self, key: &Key, identity: &Identity, version: String) -> Option<&mut DaemonSet> {
        let found = self.cluster.daemon_sets.get_mut(key).filter(|set| set.identity == *identity)?;
        found.identity.version = version;
        Some(found)
    }

    /// What the DaemonSet controller, the kubelets and the agents do, all of it at once.
    pub(super) fn controllers(&mut self) {
        let off = self
            .cluster
            .daemon_sets
            .get(&Self::kube_proxy_key())
            .is_some_and(crate::plan::kube_proxy::is_kept_off);
        self.cluster.pods.clear();
        for (name, node) in &self.cluster.nodes {
            let label = node.labels.get(AGENT_POOL_LABEL);
            let lingers = self.lingering.contains(name);
            if label.is_none() || !off || lingers {
                let pod = Pod {
                    daemon_set: "kube-proxy".to_owned(),
                    node: name.clone(),
                    ready: node.ready && !lingers,
                    trouble: None,
                };
                self.cluster.pods.insert(Key::new("kube-system", format!("kube-proxy-{name}")), pod);
            }
            let Some(pool) = label else { continue };
            let set = Key::new("kube-system", format!("{AGENT_NAME}-{pool}"));
            if self.cluster.daemon_sets.contains_key(&set) {
                let broken = self.broken.contains(name);
                let trouble = broken.then(|| "container proxy-agent: ImagePullBackOff".to_owned());
                let pod = Pod {
                    daemon_set: set.name.clone(),
                    node: name.clone(),
                    ready: node.ready && !broken,
                    trouble,
                };
                self.cluster.pods.insert(Key::new("kube-system", format!("{}-{name}", set.name)), pod);
            }
        }
        self.agents();
    }

    /// Each agent that runs acknowledges what there is.
    fn agents(&mut self) {
        let all: BTreeMap<String, i64> = self
            .cluster
            .objects
            .values()
            .map(|object| (object.metadata.uid.clone().unwrap(), object.metadata.generation.unwrap()))
            .collect();
        let all = Arc::new(all);
        let agents: Vec<(String, String)> = self
            .cluster
            .pods
            .values()
            .filter(|pod| pod.ready)
            .filter_map(|pod| {
                Some((pod.node.clone(), pod.daemon_set.strip_prefix("proxy-agent-")?.to_owned()))
            })
            .collect();
        for (node, pool) in agents {
            let current = self.cluster.reports.get(&node);
            if current.is_some_and(|report| report.pool == pool && report.acknowledged == all) {
                continue;
            }
            let identity = self.identity();
            let report = Report { identity, pool, connected: true, acknowledged: all.clone() };
            self.cluster.reports.insert(node, report);
        }
    }

    /// Plans and carries out, with the controllers in between, until nothing is left to do or to wait for. Panics when that
    /// does not come.
    pub(super) fn settle(&mut self, mut each: impl FnMut(&Self, &Action)) {
        let bound =
            60 + 12 * (self.cluster.nodes.len() + self.cluster.services.len() + self.cluster.objects.len());
        for _ in 0..bound {
            self.controllers();
            let plan = self.plan();
            if plan.actions.is_empty() {
                let Some(wake) = plan.wake else { return };
                self.now = self.now.max(wake);
                continue;
            }
            for action in &plan.actions {
                each(self, action);
                self.carry_out(action);
            }
            self.now += SignedDuration::from_secs(1);
        }
        let left: Vec<String> = self.plan().actions.iter().map(ToString::to_string).collect();
        panic!("not settled after {bound} rounds; left {left:?}");
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

/// A write of the policy: who changes a value owns it alone.
fn write_policy(service: &mut Service, manager: &str, applies: bool, policy: TrafficPolicy) {
    if service.policy != Some(policy) {
        service.owners.iter_mut().for_each(|owner| owner.field = false);
        service.policy = Some(policy);
        owner_entry(service, manager, applies).field = true;
    } else if applies {
        owner_entry(service, manager, applies).field = true;
    }
    service.health_check_node_port = (policy == TrafficPolicy::Local && service.balanced).then_some(30000);
    service.owners.retain(|owner| owner.field || !owner.labels.is_empty() || owner.is_us());
}

fn shape_service(service: &mut Service, shape: &Shape) {
    let us = owner_entry(service, OPERATOR_FIELD_MANAGER, true);
    let (had_field, had_labels) = (us.field, std::mem::take(&mut us.labels));
    us.field = false;
    if let Some(ServiceLabel { key, value }) = &shape.label {
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
    service.record.clone_from(&shape.record);
    if *shape == Shape::default() {
        service.owners.retain(|owner| !owner.is_us());
    }
}

fn set_terms(set: &mut DaemonSetObject, terms: &serde_json::Value) {
    let affinity = if terms.is_null() {
        json!(null)
    } else {
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}})
    };
    set.spec.template.spec.as_mut().unwrap().affinity = serde_json::from_value(affinity).unwrap();
}
