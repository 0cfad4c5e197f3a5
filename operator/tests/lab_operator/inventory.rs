//! Everything that a cluster has, by kind and name, so that what was left behind is found whatever it is.

use std::collections::BTreeSet;

use isp_lab::Lab;
use serde_json::Value;

use super::harness::eventually;

/// What comes and goes by itself: Events end with time, and of what the cluster's own DaemonSet was like before each of its changes
/// its controller keeps a record.
const PASSING: [&str; 2] = ["events", "controllerrevisions"];

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Inventory(BTreeSet<String>);

impl Inventory {
    pub(crate) async fn take(lab: &Lab) -> Self {
        let listed = lab.kubectl(["api-resources", "--verbs=list", "--output=name"]).await.unwrap().stdout;
        let passing = |kind: &&str| !PASSING.contains(&kind.split('.').next().unwrap_or_default());
        let kinds: Vec<&str> = listed.lines().filter(passing).collect();
        let get = ["get", &kinds.join(","), "--all-namespaces", "--output=json"];
        let all: Value = serde_json::from_str(&lab.kubectl(get).await.unwrap().stdout).unwrap();
        Self(all["items"].as_array().unwrap().iter().map(name).collect())
    }

    /// The cluster has again what it had, and nothing else.
    pub(crate) async fn expect_again(&self, lab: &Lab) {
        eventually("the cluster has what it had", async || {
            let now = Self::take(lab).await;
            let (more, less): (Vec<_>, Vec<_>) =
                (now.0.difference(&self.0).collect(), self.0.difference(&now.0).collect());
            if !(more.is_empty() && less.is_empty()) {
                println!("left behind: {more:?}; missing: {less:?}");
            }
            now == *self
        })
        .await;
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

/// Its kind, namespace and name. A pod of a DaemonSet has a new name each time, so it goes by its owner's and its node.
fn name(object: &Value) -> String {
    let metadata = &object["metadata"];
    let owner = &metadata["ownerReferences"][0];
    let own = match (object["kind"].as_str(), owner["kind"].as_str()) {
        (Some("Pod"), Some("DaemonSet")) => format!("{} on {}", owner["name"], object["spec"]["nodeName"]),
        _ => metadata["name"].to_string(),
    };
    format!("{} {} {}/{own}", object["apiVersion"], object["kind"], metadata["namespace"])
}
