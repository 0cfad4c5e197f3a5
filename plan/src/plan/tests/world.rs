//! A simulated cluster, with the actions of everyone except the operator.

use std::ops::{Deref, DerefMut};

use isp_api::IngressSourcePreserve;
use isp_api::names::SERVICE_PROXY_NAME_LABEL;
use isp_api::preserve::TrafficPolicy;
use k8s_openapi::api::apps::v1::DaemonSet as DaemonSetObject;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::SignedDuration;
use serde_json::json;

use crate::action::Action;
use crate::cluster::{Cluster, DaemonSet, Key, Node, Service};
use crate::observe;
use crate::ownership::Owner;
use crate::plan::Settings;
use crate::simulate::{Simulation, write_policy};

pub(super) const INGRESS: &str = "ingress";

#[derive(Clone)]
pub(super) struct World(Simulation);

impl Deref for World {
    type Target = Simulation;

    fn deref(&self) -> &Simulation {
        &self.0
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut Simulation {
        &mut self.0
    }
}

pub(super) fn kube_proxy() -> DaemonSetObject {
    let mut set = isp_testkit::kube_proxy::daemon_set(None);
    // Without tolerations, so that a tainted node has no kube-proxy.
    set["spec"]["template"]["spec"].as_object_mut().unwrap().remove("tolerations").unwrap();
    serde_json::from_value(set).unwrap()
}

impl World {
    /// A cluster with kube-proxy and these nodes.
    pub(super) fn new(nodes: &[(&str, &[(&str, &str)])]) -> Self {
        let settings = Settings {
            agent_image: "agent:1".to_owned(),
            agent_pull_secrets: Vec::new(),
            namespace: "sourcepreserve-system".to_owned(),
            cleanup: false,
        };
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut this = Self(Simulation::new(Cluster::default(), settings, now));
        // Creation timestamps derive from the counter.
        this.counter = 0;
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

    /// A Service created by an update: its writer owns the defaults.
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

    /// Another manager writes the policy by an update.
    pub(super) fn update_policy(&mut self, key: &Key, writer: &str, policy: TrafficPolicy) {
        self.service(key, |service| write_policy(service, writer, false, policy));
    }

    /// Another manager declares the policy by a forced apply.
    pub(super) fn declare_policy(&mut self, key: &Key, writer: &str, policy: TrafficPolicy) {
        self.service(key, |service| write_policy(service, writer, true, policy));
    }

    /// Somebody sets or removes the label by which kube-proxies skip the Service.
    pub(super) fn set_proxy_name(&mut self, key: &Key, value: Option<&str>) {
        self.service(key, |service| {
            service.owners.iter_mut().for_each(|owner| {
                owner.labels.remove(SERVICE_PROXY_NAME_LABEL);
            });
            match value {
                Some(value) => {
                    let labels = [SERVICE_PROXY_NAME_LABEL.to_owned()].into();
                    service.owners.push(Owner { manager: "helm".to_owned(), labels, ..Owner::default() });
                    service.labels.insert(SERVICE_PROXY_NAME_LABEL.to_owned(), value.to_owned());
                }
                None => drop(service.labels.remove(SERVICE_PROXY_NAME_LABEL)),
            }
        });
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

    /// No agent starts on the node.
    pub(super) fn break_agent(&mut self, node: &str) {
        self.broken.insert(node.to_owned(), "container proxy-agent: ImagePullBackOff".to_owned());
    }

    /// Plans once and executes the actions.
    pub(super) fn step(&mut self) {
        for action in self.plan().actions {
            self.carry_out(&action);
        }
    }

    /// Runs the operator until there is nothing left to do or wait for.
    pub(super) fn settle(&mut self, mut each: impl FnMut(&Simulation, &Action)) {
        self.0.settle(|world, _, action| each(world, action)).unwrap();
    }
}
