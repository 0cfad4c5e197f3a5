//! The table of pods, `api/tests/sidecars.yaml`, used with the Rust function, the API server and
//! Istio's injector.

mod counts;
pub mod tried;

use std::collections::BTreeMap;

use serde::Deserialize;

pub use self::counts::Counts;

/// The annotation with a pod's interception mode.
pub const MODE: &str = "sidecar.istio.io/interceptionMode";

/// A pod in its namespace, and the decision about it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Row {
    /// What the row is about.
    pub name: String,
    /// The namespace, if its name matters.
    pub namespace_name: Option<String>,
    #[serde(default)]
    namespace: BTreeMap<String, String>,
    /// The pod's labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The pod's annotations.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    /// Whether the pod uses the node's network.
    #[serde(default)]
    pub host_network: bool,
    /// The expected decision.
    pub expect: String,
    /// Whether the decision has a warning.
    #[serde(default)]
    pub warns: bool,
    /// `skip` if Istio's injector is not asked.
    pub injector: Option<String>,
}

/// All rows.
pub fn rows() -> Vec<Row> {
    serde_yaml::from_str(include_str!("../../api/tests/sidecars.yaml")).unwrap()
}

impl Row {
    /// Every namespace has the label that the entry selects, unless the row overrides it.
    pub fn namespace_labels(&self) -> BTreeMap<String, String> {
        let mut labels = BTreeMap::from([("team".to_owned(), "shop".to_owned())]);
        labels.extend(self.namespace.clone());
        labels
    }

    /// The expected mode in the pod's annotation.
    pub fn mode(&self) -> Option<&str> {
        if self.expect == "Set" { Some("TPROXY") } else { self.annotations.get(MODE).map(String::as_str) }
    }
}
