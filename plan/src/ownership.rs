//! Who has declared a field, and who merely happens to own it.
//!
//! A manager that wrote an object with an update owns every default that the API server filled in. That is no
//! declaration. A server-side apply is, and so is what `kubectl apply` was given, which it keeps in an annotation.

use std::collections::{BTreeMap, BTreeSet};

use isp_api::names::OPERATOR_FIELD_MANAGER;
use isp_api::preserve::TrafficPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde_json::Value;

use crate::cluster::Service;

/// One manager, and which of the fields that matter here it owns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// The manager's name.
    pub manager: String,
    /// Whether it owns them by server-side apply.
    pub applies: bool,
    /// Whether it owns `spec.externalTrafficPolicy`, or the required node affinity of a DaemonSet's pods.
    pub field: bool,
    /// The keys of the labels that it owns.
    pub labels: BTreeSet<String>,
    /// The keys of the annotations that it owns, of the operator itself.
    pub annotations: BTreeSet<String>,
}

impl Owner {
    /// Whether it is the operator itself.
    pub fn is_us(&self) -> bool {
        self.applies && self.manager == OPERATOR_FIELD_MANAGER
    }
}

/// The owners of the field at `path` and of labels, from what the API server keeps about them.
pub fn owners(managed: Option<&Vec<ManagedFieldsEntry>>, path: &[&str]) -> Vec<Owner> {
    let entry = |entry: &ManagedFieldsEntry| {
        let fields = &entry.fields_v1.as_ref()?.0;
        let keys = |of: &str| {
            let fields = fields.pointer(of).and_then(Value::as_object).into_iter().flatten();
            fields.filter_map(|(key, _)| key.strip_prefix("f:").map(str::to_owned)).collect::<BTreeSet<_>>()
        };
        let mut owner = Owner {
            manager: entry.manager.clone().unwrap_or_default(),
            applies: entry.operation.as_deref() == Some("Apply"),
            field: path.iter().try_fold(fields, |fields, name| fields.get(*name)).is_some(),
            labels: keys("/f:metadata/f:labels"),
            annotations: BTreeSet::new(),
        };
        if owner.is_us() {
            owner.annotations = keys("/f:metadata/f:annotations");
        }
        (owner.field || !owner.labels.is_empty() || owner.is_us()).then_some(owner)
    };
    managed.into_iter().flatten().filter_map(entry).collect()
}

/// Somebody who has declared another value for a field that must change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// The manager.
    pub manager: String,
    /// The field.
    pub field: String,
    /// The value that it wants.
    pub value: String,
}

const KUBECTL_APPLY: &str = "kubectl apply";

/// Who has declared another policy than Local.
pub fn policy_declared(service: &Service) -> Option<Declared> {
    let declared = |manager: String, value: &str| Declared {
        manager,
        field: "spec.externalTrafficPolicy".to_owned(),
        value: value.to_owned(),
    };
    if service.policy != Some(TrafficPolicy::Local)
        && let Some(owner) = foreign(&service.owners).find(|owner| owner.applies && owner.field)
    {
        return Some(declared(owner.manager.clone(), "Cluster"));
    }
    let applied = service.last_applied.policy.as_deref().filter(|value| *value != "Local")?;
    Some(declared(KUBECTL_APPLY.to_owned(), applied))
}

/// Who has declared another value for the label.
pub fn label_declared(service: &Service, key: &str, value: &str) -> Option<Declared> {
    let declared = |manager: String, value: &str| Declared {
        manager,
        field: format!("metadata.labels[{key}]"),
        value: value.to_owned(),
    };
    if let Some(present) = service.labels.get(key).filter(|present| *present != value)
        && let Some(owner) = foreign(&service.owners).find(|owner| owner.labels.contains(key))
    {
        // Nobody gets a label by default: whoever owns one has asked for it.
        return Some(declared(owner.manager.clone(), present));
    }
    let applied = service.last_applied.labels.get(key).filter(|applied| *applied != value)?;
    Some(declared(KUBECTL_APPLY.to_owned(), applied))
}

/// Who owns the field without having declared it, and can be given it back by a plain update.
pub fn undeclared_owner(owners: &[Owner]) -> Option<String> {
    foreign(owners).find(|owner| !owner.applies && owner.field).map(|owner| owner.manager.clone())
}

/// Who owns the field now, besides the operator.
pub fn foreign(owners: &[Owner]) -> impl Iterator<Item = &Owner> {
    owners.iter().filter(|owner| !owner.is_us())
}

/// Whether the operator owns the field.
pub fn ours(owners: &[Owner]) -> bool {
    owners.iter().any(|owner| owner.is_us() && owner.field)
}

/// The manager to which the API server gives every field of an object without managedFields when somebody applies to it.
pub(crate) const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Whether the fields of ours cannot be given up by no longer applying them: managedFields do not tell of us, or were emptied and tell of
/// us and of everybody before.
pub(crate) fn is_lost(owners: &[Owner]) -> bool {
    let mine = owners.iter().find(|owner| owner.is_us());
    let blurred = |mine: &Owner| {
        owners.iter().filter(|owner| owner.manager == BEFORE_FIRST_APPLY).any(|before| {
            (before.field && mine.field) || before.labels.intersection(&mine.labels).next().is_some()
        })
    };
    mine.is_none_or(blurred)
}

/// What a declaration would be in the annotation of `kubectl apply`, at a path.
pub(crate) fn last_applied(annotations: Option<&BTreeMap<String, String>>) -> Option<Value> {
    let text = annotations?.get("kubectl.kubernetes.io/last-applied-configuration")?;
    serde_json::from_str(text).ok()
}
