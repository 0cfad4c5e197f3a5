//! All objects of a cluster by kind and name, to find any leftovers.

use std::collections::BTreeSet;

use isp_lab::Lab;
use serde_json::Value;

use crate::wait::until;

/// Kinds that change by themselves: Events expire, and the DaemonSet controller keeps a revision of
/// each change of a template.
const PASSING: [&str; 2] = ["events", "controllerrevisions"];

/// The names of all objects.
#[derive(Debug, PartialEq, Eq)]
pub struct Inventory(BTreeSet<String>);

impl Inventory {
    /// Lists the objects of every kind.
    pub async fn take(lab: &Lab) -> Self {
        let listed = lab.kubectl(["api-resources", "--verbs=list", "--output=name"]).await.unwrap().stdout;
        let passing = |kind: &&str| !PASSING.contains(&kind.split('.').next().unwrap_or_default());
        let kinds: Vec<&str> = listed.lines().filter(passing).collect();
        let get = ["get", &kinds.join(","), "--all-namespaces", "--output=json"];
        let all: Value = serde_json::from_str(&lab.kubectl(get).await.unwrap().stdout).unwrap();
        Self(all["items"].as_array().unwrap().iter().map(name).collect())
    }

    /// Asserts that the cluster has the same objects again.
    pub async fn expect_again(&self, lab: &Lab) {
        until("the cluster has what it had", async || {
            let now = Self::take(lab).await;
            let (more, less): (Vec<_>, Vec<_>) =
                (now.0.difference(&self.0).collect(), self.0.difference(&now.0).collect());
            if now == *self { Ok(()) } else { Err(format!("left behind: {more:?}; missing: {less:?}")) }
        })
        .await;
    }

    /// The number of objects.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// Kind, namespace and name. A DaemonSet pod gets a new name each time, so its owner and node are
/// used instead.
fn name(object: &Value) -> String {
    let metadata = &object["metadata"];
    let owner = &metadata["ownerReferences"][0];
    let own = match (object["kind"].as_str(), owner["kind"].as_str()) {
        (Some("Pod"), Some("DaemonSet")) => format!("{} on {}", owner["name"], object["spec"]["nodeName"]),
        _ => metadata["name"].to_string(),
    };
    format!("{} {} {}/{own}", object["apiVersion"], object["kind"], metadata["namespace"])
}
