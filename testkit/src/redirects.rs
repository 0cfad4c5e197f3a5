//! The table of pods, `api/tests/redirects.yaml`, used with the Rust function and with the webhook
//! behind a real API server.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

/// The image of the init container in tests.
pub const IMAGE: &str = "registry.example/pod-redirect:1";

/// A pod in its namespace, and what becomes of it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Row {
    /// What the row is about.
    pub name: String,
    /// The namespace, if its name matters.
    pub namespace_name: Option<String>,
    #[serde(default)]
    namespace: BTreeMap<String, String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    #[serde(default)]
    spec: Option<Value>,
    /// The expected outcome.
    pub expect: String,
    /// The place of our init container.
    #[serde(default)]
    pub place: usize,
    /// An excerpt of each expected warning.
    #[serde(default)]
    pub warns: Vec<String>,
    /// The quality of service of the pod that is created.
    pub qos: Option<String>,
}

/// All rows.
pub fn rows() -> Vec<Row> {
    serde_yaml::from_str(include_str!("../../api/tests/redirects.yaml")).unwrap()
}

/// The entries of the table.
pub fn entries() -> Value {
    let outbound = json!({"port": 15001});
    let exempt = json!({"uids": [1337], "gids": [1337]});
    json!([
        {
            "namespaceSelector": {"matchLabels": {"team": "shop"}},
            "podSelector": {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["batch"]}]},
            "redirect": {"inbound": {"method": "TPROXY", "port": 15006, "exceptPorts": [9090]}, "outbound": outbound, "exempt": exempt},
        },
        {
            "namespaceSelector": {"matchLabels": {"team": "late"}},
            "redirect": {
                "inbound": {"method": "REDIRECT", "port": 15006}, "outbound": outbound, "exempt": exempt, "initOrder": "Last",
            },
        },
    ])
}

impl Row {
    /// Every namespace has the label that the first entry selects, unless the row overrides it.
    pub fn namespace_labels(&self) -> BTreeMap<String, String> {
        let mut labels = BTreeMap::from([("team".to_owned(), "shop".to_owned())]);
        labels.extend(self.namespace.clone());
        labels
    }

    /// The pod as its author writes it. `ours` replaces the word OURS.
    pub fn pod(&self, ours: &Value) -> Value {
        let mut spec = self.spec.clone().unwrap_or_else(fits_everywhere);
        let inits = spec.get_mut("initContainers").and_then(Value::as_array_mut);
        inits.into_iter().flatten().filter(|init| **init == "OURS").for_each(|init| *init = ours.clone());
        spec["automountServiceAccountToken"] = json!(false);
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "pod", "labels": self.labels, "annotations": self.annotations},
            "spec": spec,
        })
    }
}

/// The spec of a pod that every namespace admits.
fn fits_everywhere() -> Value {
    json!({
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{
            "name": "app", "image": "app",
            "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
        }],
    })
}
