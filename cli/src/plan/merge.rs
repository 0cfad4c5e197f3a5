//! The objects of the cluster after the file is applied.

use std::collections::BTreeMap;

use isp_api::IngressSourcePreserve;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

/// The effect of applying the file on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Change {
    /// The cluster does not have the object.
    Created,
    /// The cluster has it with another spec.
    Changed,
    /// The cluster has it as in the file.
    Unchanged,
}

/// All objects by name, and the change to each object of the file.
pub(super) fn merge(
    mut objects: BTreeMap<String, IngressSourcePreserve>,
    wanted: Vec<IngressSourcePreserve>,
    now: Timestamp,
) -> (BTreeMap<String, IngressSourcePreserve>, Vec<(String, Change)>) {
    let mut changes = Vec::new();
    for IngressSourcePreserve { spec, metadata, .. } in wanted {
        let name = metadata.name.unwrap_or_default();
        let change = match objects.get_mut(&name) {
            Some(object) if object.spec == spec => Change::Unchanged,
            Some(object) => {
                object.spec = spec;
                object.metadata.generation = object.metadata.generation.map(|generation| generation + 1);
                Change::Changed
            }
            None => {
                let metadata = ObjectMeta {
                    name: Some(name.clone()),
                    uid: Some(format!("new-{name}")),
                    generation: Some(1),
                    resource_version: Some("0".to_owned()),
                    creation_timestamp: Some(Time(now)),
                    labels: metadata.labels,
                    ..ObjectMeta::default()
                };
                let object = IngressSourcePreserve { metadata, spec, status: None };
                objects.insert(name.clone(), object);
                Change::Created
            }
        };
        changes.push((name, change));
    }
    (objects, changes)
}
