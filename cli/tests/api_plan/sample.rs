//! The samples, and the cluster that each was written for: nodes and Services that its selectors
//! and names ask for, and others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use isp_api::IngressSourcePreserve;
use isp_api::preserve::ServiceTarget;
use isp_testkit::repository;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize;
use serde_json::{Value, json};

const EDGES: [&str; 2] = ["edge-1", "edge-2"];
/// Enough for several waves.
const WORKERS: [&str; 4] = ["work-1", "work-2", "work-3", "work-4"];

type Labels = BTreeMap<String, String>;

/// One file.
pub(crate) struct Sample {
    pub(crate) path: PathBuf,
    objects: Vec<IngressSourcePreserve>,
}

/// All there are, by name.
pub(crate) fn all() -> Vec<Sample> {
    let directory = repository::file("manifests/samples");
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect();
    files.sort();
    files.into_iter().map(Sample::read).collect()
}

impl Sample {
    fn read(path: PathBuf) -> Self {
        let text = std::fs::read_to_string(&path).unwrap();
        let documents = serde_yaml::Deserializer::from_str(&text);
        let objects: Vec<_> =
            documents.map(|document| IngressSourcePreserve::deserialize(document).unwrap()).collect();
        assert!(
            (1..=EDGES.len()).contains(&objects.len()),
            "{}: each object needs an ingress node",
            path.display()
        );
        Self { path, objects }
    }

    pub(crate) fn name(&self) -> &str {
        self.path.file_name().unwrap().to_str().unwrap()
    }

    /// Its objects, by name.
    pub(crate) fn names(&self) -> BTreeSet<&str> {
        self.objects.iter().filter_map(|object| object.metadata.name.as_deref()).collect()
    }

    /// The objects that ask for a Service: one.
    pub(crate) fn asking_for(&self, service: &str) -> BTreeSet<&str> {
        let (namespace, name) = service.split_once('/').unwrap();
        let asks = |target: &ServiceTarget| {
            target.namespace == namespace && target.name.as_ref().is_none_or(|wanted| wanted == name)
        };
        let objects = self.objects.iter().filter(|object| object.spec.services.iter().any(asks));
        objects.filter_map(|object| object.metadata.name.as_deref()).collect()
    }

    /// The objects that a node is elsewhere for.
    pub(crate) fn elsewhere_for(&self, node: &str) -> BTreeSet<&str> {
        let objects = self.objects.iter().enumerate();
        let objects = objects.filter(|(place, _)| !self.edges(*place).any(|edge| edge == node));
        objects.filter_map(|(_, object)| object.metadata.name.as_deref()).collect()
    }

    /// Everything that is in the cluster before it. Applied after that of another sample it also
    /// takes away labels.
    pub(crate) fn cluster(&self) -> Value {
        let mut namespaces: BTreeMap<String, Labels> = BTreeMap::new();
        let mut items = self.nodes();
        for (place, object) in self.objects.iter().enumerate() {
            let edges: Vec<&str> = self.edges(place).collect();
            for target in &object.spec.services {
                namespaces.entry(target.namespace.clone()).or_default();
                let namespace = target.namespace.as_str();
                let mut service = |name: &str, kind: &str, labels: &Labels| {
                    items.extend(service(namespace, name, kind, labels, &edges));
                };
                match (&target.name, &target.selector) {
                    (Some(name), _) => service(name, "LoadBalancer", &Labels::new()),
                    (None, selector) => {
                        let labels = selected(selector.as_ref().unwrap());
                        service("first", "LoadBalancer", &labels);
                        service("second", "NodePort", &labels);
                    }
                }
                // Nobody asks for it.
                service("bystander", "LoadBalancer", &Labels::new());
            }
            for (place, entry) in object.spec.sidecars.iter().enumerate() {
                namespaces.insert(format!("apps-{place}"), selected(&entry.namespace_selector));
            }
        }
        let namespaces = namespaces.iter().map(|(name, labels)| {
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        });
        let items: Vec<Value> = namespaces.chain(items).collect();
        json!({"apiVersion": "v1", "kind": "List", "items": items})
    }

    /// The ingress nodes of an object: each has its own, the only one has all.
    fn edges(&self, place: usize) -> impl Iterator<Item = &'static str> {
        let objects = self.objects.len();
        EDGES.into_iter().enumerate().filter(move |(edge, _)| edge % objects == place).map(|(_, name)| name)
    }

    fn nodes(&self) -> Vec<Value> {
        let mut nodes: BTreeMap<&str, Labels> = WORKERS.map(|name| (name, Labels::new())).into();
        for (place, object) in self.objects.iter().enumerate() {
            for edge in self.edges(place) {
                nodes.insert(edge, selected(&object.spec.ingress_nodes.selector));
            }
            // Each pool has some, in the order in which they are looked at.
            for (pool, workers) in object.spec.node_pools.iter().zip(WORKERS.chunks(2)) {
                for worker in workers {
                    nodes.insert(worker, selected(&pool.selector));
                }
            }
        }
        let node = |(name, labels): (&str, Labels)| {
            json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
            })
        };
        nodes.into_iter().map(node).collect()
    }
}

/// Labels that a selector matches.
fn selected(selector: &LabelSelector) -> Labels {
    let mut labels = selector.match_labels.clone().unwrap_or_default();
    for requirement in selector.match_expressions.iter().flatten() {
        let value = match requirement.operator.as_str() {
            "In" => requirement.values.as_ref().unwrap()[0].clone(),
            "Exists" => String::new(),
            // These hold where the label is not.
            _ => continue,
        };
        labels.insert(requirement.key.clone(), value);
    }
    labels
}

/// A Service with a ready endpoint on each of these nodes.
fn service(namespace: &str, name: &str, kind: &str, labels: &Labels, nodes: &[&str]) -> [Value; 2] {
    let endpoint = |(place, node): (usize, &&str)| {
        let address = format!("10.244.{place}.5");
        json!({"addresses": [address], "nodeName": node, "conditions": {"ready": true}})
    };
    let endpoints: Vec<Value> = nodes.iter().enumerate().map(endpoint).collect();
    [
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": {"type": kind, "ports": [{"port": 80}]},
        }),
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {
                "name": name, "namespace": namespace, "labels": {"kubernetes.io/service-name": name},
            },
            "ports": [{"port": 8080}],
            "endpoints": endpoints,
        }),
    ]
}
