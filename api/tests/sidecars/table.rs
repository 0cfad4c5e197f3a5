//! The table of pods, `sidecars.yaml`, used with the Rust function, the API server and Istio's
//! injector.

#![allow(dead_code, reason = "each program uses a part of it")]

use std::collections::BTreeMap;

use serde::Deserialize;

pub(crate) const MODE: &str = "sidecar.istio.io/interceptionMode";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) namespace_name: Option<String>,
    #[serde(default)]
    namespace: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) annotations: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) host_network: bool,
    pub(crate) expect: String,
    #[serde(default)]
    pub(crate) warns: bool,
    pub(crate) injector: Option<String>,
}

pub(crate) fn rows() -> Vec<Row> {
    serde_yaml::from_str(include_str!("../sidecars.yaml")).unwrap()
}

impl Row {
    /// Every namespace has the label that the entry selects, unless the row overrides it.
    pub(crate) fn namespace_labels(&self) -> BTreeMap<String, String> {
        let mut labels = BTreeMap::from([("team".to_owned(), "shop".to_owned())]);
        labels.extend(self.namespace.clone());
        labels
    }

    /// The expected mode in the pod's annotation.
    pub(crate) fn mode(&self) -> Option<&str> {
        if self.expect == "Set" { Some("TPROXY") } else { self.annotations.get(MODE).map(String::as_str) }
    }
}
