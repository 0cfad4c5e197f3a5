//! Builds the API request of an action. Sending it is left to the caller.

use std::collections::BTreeMap;

use isp_api::names::{
    AGENT_IMAGES_LABEL, AGENT_POOL_LABEL, AGENT_REVISION_LABEL, FAILURE_ANNOTATION, FINALIZER,
    HANDOVER_ANNOTATION, OPERATOR_FIELD_MANAGER, ORIGINAL_ANNOTATION, PROXY_NAME, SERVICE_PROXY_NAME_LABEL,
};
use k8s_openapi::api::core::v1::NodeSelectorTerm;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Action, NodeShape, Returned, Shape, Target};
use crate::cluster::{Identity, Key};

/// A write to one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The object.
    pub target: Target,
    /// The kind of request, with its content.
    pub request: Request,
}

/// The request for a write.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Server-side apply with force, of exactly the fields that this manager owns. Conflicts were
    /// checked during planning.
    Apply {
        /// The field manager.
        manager: &'static str,
        /// The fields.
        body: Value,
    },
    /// A merge patch as another field manager, which then owns the changed fields.
    Merge {
        /// The field manager.
        manager: String,
        /// The patch.
        body: Value,
    },
    /// Deletion with this precondition.
    Delete(Identity),
}

fn apply(body: Value) -> Request {
    Request::Apply { manager: OPERATOR_FIELD_MANAGER, body }
}

fn merge(manager: &str, body: Value) -> Request {
    Request::Merge { manager: manager.to_owned(), body }
}

impl Action {
    /// The write that executes the action.
    pub fn write(&self) -> Write {
        Write { target: self.target(), request: self.request() }
    }

    fn request(&self) -> Request {
        match self {
            Self::Finalizer { object, identity, held } => {
                let mut metadata = metadata_of(object, identity);
                if *held {
                    metadata["finalizers"] = json!([FINALIZER]);
                }
                apply(preserve(&metadata))
            }
            Self::Status { object, uid, status } => {
                let mut body = preserve(&json!({"name": object, "uid": uid}));
                body["status"] = json!(status);
                apply(body)
            }
            Self::ShapeService { service, identity, shape, .. } => {
                apply(shape_service(service, identity, shape))
            }
            Self::ReturnFields { identity, owner, fields, .. } => {
                merge(owner, return_fields(identity, fields))
            }
            Self::ShapeNode { node, identity, shape, .. } => apply(shape_node(node, identity, shape)),
            Self::KeepOff { daemon_set, identity, terms, record } => {
                let mut body = bare_daemon_set(daemon_set, identity);
                body["metadata"]["annotations"] = json!({ORIGINAL_ANNOTATION: text(record)});
                body["spec"] = affinity(terms);
                apply(body)
            }
            Self::ReturnTerms { identity, owner, terms, .. } => {
                let mut metadata = precondition(identity);
                metadata["annotations"] = json!({ORIGINAL_ANNOTATION: null});
                merge(owner, json!({"metadata": metadata, "spec": affinity(terms)}))
            }
            Self::ReleaseKubeProxy { daemon_set, identity } => apply(bare_daemon_set(daemon_set, identity)),
            Self::ApplyPool { daemon_set, .. } => {
                let mut body = json!(daemon_set);
                body["apiVersion"] = json!("apps/v1");
                body["kind"] = json!("DaemonSet");
                apply(body)
            }
            Self::ApplyOwn { object, .. } => apply(Value::clone(object)),
            Self::DeletePool { identity, .. }
            | Self::DeleteOwn { identity, .. }
            | Self::Forget { identity, .. } => Request::Delete(identity.clone()),
        }
    }
}

fn preserve(metadata: &Value) -> Value {
    json!({
        "apiVersion": "sourcepreserve.io/v1alpha1",
        "kind": "IngressSourcePreserve",
        "metadata": metadata,
    })
}

/// The UID prevents an apply from recreating a deleted object. The resource version rejects
/// decisions based on outdated state.
fn precondition(identity: &Identity) -> Value {
    json!({"uid": identity.uid, "resourceVersion": identity.version})
}

fn metadata_of(name: &str, identity: &Identity) -> Value {
    let mut metadata = precondition(identity);
    metadata["name"] = json!(name);
    metadata
}

fn text(record: &impl Serialize) -> String {
    serde_json::to_string(record).unwrap_or_default()
}

fn shape_service(service: &Key, identity: &Identity, shape: &Shape) -> Value {
    let mut metadata = metadata_of(&service.name, identity);
    metadata["namespace"] = json!(service.namespace);
    let label = shape.label.iter().map(|label| (label.key.clone(), label.value.clone()));
    let proxy = shape.taken_over.then(|| (SERVICE_PROXY_NAME_LABEL.to_owned(), PROXY_NAME.to_owned()));
    let labels: BTreeMap<String, String> = label.chain(proxy).collect();
    if !labels.is_empty() {
        metadata["labels"] = json!(labels);
    }
    if let Some(record) = &shape.record {
        metadata["annotations"] = json!({ORIGINAL_ANNOTATION: text(record)});
    }
    let mut body = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata});
    if shape.local {
        body["spec"] = json!({"externalTrafficPolicy": "Local"});
    }
    body
}

fn return_fields(identity: &Identity, fields: &Returned) -> Value {
    let mut metadata = precondition(identity);
    match fields {
        Returned::Policy => json!({"metadata": metadata, "spec": {"externalTrafficPolicy": "Cluster"}}),
        Returned::Label(label) => {
            metadata["labels"] = json!({&label.key: label.value});
            json!({"metadata": metadata})
        }
        Returned::ToKubeProxy => {
            metadata["labels"] = json!({SERVICE_PROXY_NAME_LABEL: null});
            json!({"metadata": metadata})
        }
        Returned::Everything { policy, label } => {
            metadata["annotations"] = json!({ORIGINAL_ANNOTATION: null});
            if let Some((key, before)) = label {
                metadata["labels"] = json!({key: before});
            }
            let mut body = json!({"metadata": metadata});
            if *policy {
                body["spec"] = json!({"externalTrafficPolicy": "Cluster"});
            }
            body
        }
    }
}

fn shape_node(node: &str, identity: &Identity, shape: &NodeShape) -> Value {
    let mut metadata = metadata_of(node, identity);
    let labels = [
        (AGENT_POOL_LABEL, &shape.pool),
        (AGENT_REVISION_LABEL, &shape.revision),
        (AGENT_IMAGES_LABEL, &shape.images),
    ];
    let labels: Map<String, Value> =
        labels.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value.clone()?.into()))).collect();
    if !labels.is_empty() {
        metadata["labels"] = labels.into();
    }
    let mut annotations = Map::new();
    if let Some(handover) = &shape.handover {
        annotations.insert(HANDOVER_ANNOTATION.to_owned(), text(handover).into());
    }
    if let Some(failure) = &shape.failure {
        annotations.insert(FAILURE_ANNOTATION.to_owned(), text(failure).into());
    }
    if !annotations.is_empty() {
        metadata["annotations"] = annotations.into();
    }
    json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
}

fn bare_daemon_set(key: &Key, identity: &Identity) -> Value {
    let mut metadata = metadata_of(&key.name, identity);
    metadata["namespace"] = json!(key.namespace);
    json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata})
}

/// Without terms, null makes a merge patch remove the existing ones.
fn affinity(terms: &[NodeSelectorTerm]) -> Value {
    let required = if terms.is_empty() { Value::Null } else { json!({"nodeSelectorTerms": terms}) };
    json!({"template": {"spec": {"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": required,
    }}}}})
}
