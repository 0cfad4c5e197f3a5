//! The objects of a dump that was taken from a real cluster, to be changed one at a time.

use std::path::Path;

use isp_plan::Key;
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::doctor::cluster::Cluster;
use crate::doctor::examine::examine;
use crate::doctor::finding::{Code, Finding};
use crate::doctor::{Severity, dump};

#[derive(Clone)]
pub(crate) struct World {
    objects: Vec<Value>,
    /// How much later it is than in the dump, in hours.
    pub(crate) later: i64,
    /// The version of the API server.
    pub(crate) version: &'static str,
}

impl World {
    /// One of the dumps of `tests/doctor`.
    pub(crate) fn of(name: &str) -> Self {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/doctor").join(name);
        let mut objects = Vec::new();
        for file in std::fs::read_dir(directory).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            for document in serde_yaml::Deserializer::from_str(&text) {
                let list = Value::deserialize(document).unwrap();
                objects.extend(list["items"].as_array().unwrap().iter().cloned());
            }
        }
        Self { objects, later: 0, version: "v1.37.0" }
    }

    fn is(object: &Value, kind: &str, name: &str) -> bool {
        object["kind"] == kind && object["metadata"]["name"].as_str().is_some_and(|own| own.starts_with(name))
    }

    /// The one object of this kind whose name begins so.
    pub(crate) fn the(&mut self, kind: &str, name: &str) -> &mut Value {
        let mut found = self.objects.iter_mut().filter(|object| Self::is(object, kind, name));
        let first = found.next().unwrap_or_else(|| panic!("there is no {kind} {name}"));
        assert!(found.next().is_none(), "there are several {kind} {name}");
        first
    }

    pub(crate) fn remove(&mut self, kind: &str, name: &str) {
        let before = self.objects.len();
        self.objects.retain(|object| !Self::is(object, kind, name));
        assert!(self.objects.len() < before, "there is no {kind} {name}");
    }

    pub(crate) fn add(&mut self, object: Value) {
        self.objects.push(object);
    }

    /// Gives the object of a namespace another name.
    pub(crate) fn rename(&mut self, kind: &str, namespace: &str, name: &str, to: &str) {
        let of = |object: &&mut Value| {
            Self::is(object, kind, name) && object["metadata"]["namespace"] == namespace
        };
        let found = self.objects.iter_mut().find(of);
        found.unwrap_or_else(|| panic!("there is no {kind} {namespace}/{name}"))["metadata"]["name"] =
            json!(to);
    }

    /// The pod of a DaemonSet on a node.
    pub(crate) fn pod_on(&mut self, node: &str, set: &str) -> &mut Value {
        let found = self.objects.iter_mut().find(|object| {
            Self::is(object, "Pod", set)
                && object["spec"]["nodeName"] == node
                && object["metadata"]["namespace"] == "kube-system"
        });
        found.unwrap_or_else(|| panic!("there is no pod {set} on {node}"))
    }

    /// Through a file, as `--from-dir` has it.
    pub(crate) fn read(&self) -> (Cluster, Timestamp) {
        let directory = tempfile::tempdir().unwrap();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": self.objects});
        std::fs::write(directory.path().join("all.json"), list.to_string()).unwrap();
        let version = json!({"serverVersion": {"gitVersion": self.version}});
        std::fs::write(directory.path().join("version.json"), version.to_string()).unwrap();
        dump::read(directory.path()).unwrap()
    }

    /// The same, at the time at which it is examined.
    pub(crate) fn read_later(&self) -> (Cluster, Timestamp) {
        let (cluster, taken) = self.read();
        (cluster, Timestamp::from_second(taken.as_second() + self.later * 3600).unwrap())
    }

    pub(crate) fn examine(&self, service: Option<&Key>) -> Vec<Finding> {
        let (cluster, now) = self.read_later();
        examine(&cluster, service, now).findings
    }
}

/// Each in a line, for messages of tests.
pub(crate) fn lines(found: &[Finding]) -> String {
    let line = |finding: &Finding| {
        let Finding { code, severity, subject, line, .. } = finding;
        assert!(*severity != Severity::Error || !finding.remedy.is_empty(), "{code:?} has no remedy");
        format!("{} {} {subject}: {line}\n", severity.as_str(), code.as_str())
    };
    found.iter().map(line).collect()
}

/// Untouched, and no policy goes by addresses.
pub(crate) fn bare() -> World {
    let mut world = World::of("untouched");
    world.remove("AuthorizationPolicy", "");
    let mut policy = policy("shop", &json!({"rules": [{"from": [{"source": {"namespaces": ["shop"]}}]}]}));
    policy["metadata"]["name"] = json!("by-namespace");
    world.add(policy);
    world
}

pub(crate) fn with(namespace: &str, spec: &Value) -> World {
    let mut world = bare();
    world.add(policy(namespace, spec));
    world
}

pub(crate) fn policy(namespace: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "security.istio.io/v1", "kind": "AuthorizationPolicy",
        "metadata": {"name": "by-address", "namespace": namespace}, "spec": spec,
    })
}

pub(crate) fn codes(found: &[Finding]) -> Vec<Code> {
    found.iter().map(|finding| finding.code).collect()
}

/// What is said beside that some Services lose the address.
#[track_caller]
pub(crate) fn expect(world: &World, expected: &[Code]) -> Vec<Finding> {
    let mut found = world.examine(None);
    assert_eq!(found.pop().map(|last| last.code), Some(Code::AddressLost));
    assert_eq!(codes(&found), expected, "{}", lines(&found));
    found
}
