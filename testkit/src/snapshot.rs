//! Objects of a cluster, for comparison before and after.

mod normal;

use std::collections::BTreeMap;
use std::time::Duration;

use http::Request;
use kube::Client;
use serde_json::{Value, json};

pub use self::normal::{comparable, declared};
use crate::difference;
use crate::wait::{Patience, until};

/// How long nothing must change in a cluster at rest.
const REST: Duration = Duration::from_secs(2);
/// Controllers may still make a last change.
const RESTORED: Patience = Patience::of(Duration::from_mins(1));

/// A part of a snapshot, by its path on the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// An object.
    Object(String),
    /// Each object of a list.
    Each(String),
    /// The names of a list's objects.
    Names(String),
    /// The names of a list's DaemonSets, with the number of their ready pods.
    ReadyPods(String),
}

/// The fields of an object that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// All fields and their ownership, except those that change by themselves; see [`comparable`].
    Everything,
    /// The name, labels, annotations and spec; see [`declared`].
    Declared,
}

/// Some objects at one point in time.
#[derive(Debug, PartialEq)]
pub struct Snapshot {
    depth: Depth,
    parts: Vec<Part>,
    objects: Objects,
}

/// Objects, or what is compared of them, by path.
type Objects = BTreeMap<String, Value>;

impl Snapshot {
    /// Takes a snapshot. DaemonSets whose ready pods are compared are complete by then.
    pub async fn take(client: &Client, depth: Depth, parts: &[Part]) -> Self {
        for list in
            parts.iter().filter_map(|part| if let Part::ReadyPods(list) = part { Some(list) } else { None })
        {
            until("all pods of the DaemonSets are ready", async || all_are_ready(client, list).await).await;
        }
        Self { depth, parts: parts.to_vec(), objects: read_all(client, depth, parts).await }
    }

    /// Takes a snapshot once nothing in it changes any more.
    pub async fn take_at_rest(client: &Client, depth: Depth, parts: &[Part]) -> Self {
        let mut snapshot = Self::take(client, depth, parts).await;
        until("the cluster comes to rest", async || {
            tokio::time::sleep(REST).await;
            let now = Self::take(client, depth, parts).await;
            let changed = differences(&snapshot.objects, &now.objects);
            snapshot = now;
            if changed.is_empty() { Ok(()) } else { Err(changed) }
        })
        .await;
        snapshot
    }

    /// Asserts that everything is as it was, or becomes so soon.
    pub async fn expect_again(&self, client: &Client) {
        RESTORED
            .until("everything is as before", async || {
                let now = read_all(client, self.depth, &self.parts).await;
                if now == self.objects { Ok(()) } else { Err(differences(&self.objects, &now)) }
            })
            .await;
    }

    /// Whether the object with this path is as it was.
    pub async fn has_unchanged(&self, client: &Client, path: &str) -> bool {
        let now = read_all(client, self.depth, &[Part::Object(path.to_owned())]).await;
        self.objects[path] == now[path]
    }
}

/// Fails with the DaemonSets that still wait for a pod.
async fn all_are_ready(client: &Client, list: &str) -> Result<(), Vec<Value>> {
    let all = items(client, list).await.into_iter();
    let waiting =
        all.filter(|item| item["status"]["numberReady"] != item["status"]["desiredNumberScheduled"]);
    let waiting: Vec<Value> = waiting.map(|item| item["status"].clone()).collect();
    if waiting.is_empty() { Ok(()) } else { Err(waiting) }
}

/// The differences, one line each.
fn differences(before: &Objects, after: &Objects) -> Vec<String> {
    let found = difference::between("", &json!(before), &json!(after));
    found.iter().map(ToString::to_string).collect()
}

async fn read_all(client: &Client, depth: Depth, parts: &[Part]) -> Objects {
    let mut objects = Objects::new();
    for part in parts {
        match part {
            Part::Object(path) => {
                objects.insert(path.clone(), at_depth(path, read(client, path).await, depth));
            }
            Part::Each(list) => {
                for item in items(client, list).await {
                    let path = path_of(list, &item);
                    let item = at_depth(&path, item, depth);
                    objects.insert(path, item);
                }
            }
            Part::Names(list) => {
                let names: Vec<String> =
                    items(client, list).await.iter().map(|item| path_of(list, item)).collect();
                objects.insert(format!("names of {list}"), json!(names));
            }
            Part::ReadyPods(list) => {
                for item in items(client, list).await {
                    let path = format!("ready pods of {}", path_of(list, &item));
                    objects.insert(path, item["status"]["numberReady"].clone());
                }
            }
        }
    }
    objects
}

fn at_depth(path: &str, object: Value, depth: Depth) -> Value {
    // The status of nodes and DaemonSets changes by itself.
    let keeps_status = !["/nodes/", "/daemonsets/"].iter().any(|kind| path.contains(kind));
    match depth {
        Depth::Everything => comparable(object, keeps_status),
        Depth::Declared => declared(&object),
    }
}

/// The path of a list's item. A list of all namespaces names the item's namespace.
fn path_of(list: &str, item: &Value) -> String {
    let name = item["metadata"]["name"].as_str().unwrap();
    match item["metadata"]["namespace"].as_str() {
        Some(namespace) if !list.contains("/namespaces/") => format!("{list}/{namespace}/{name}"),
        _ => format!("{list}/{name}"),
    }
}

async fn items(client: &Client, list: &str) -> Vec<Value> {
    let mut list = read(client, list).await;
    serde_json::from_value(list["items"].take()).unwrap()
}

async fn read(client: &Client, path: &str) -> Value {
    let request = Request::get(path).body(Vec::new()).unwrap();
    client.request(request).await.unwrap_or_else(|error| panic!("{path}: {error}"))
}
