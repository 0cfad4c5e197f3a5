//! Tells declared fields from fields that a manager merely owns.
//!
//! A manager that writes an object with an update owns every default that the API server filled in.
//! That is not a declaration. Fields set by server-side apply are declared, and so are the fields
//! in the last-applied annotation of `kubectl apply`.

use std::collections::{BTreeMap, BTreeSet};

use isp_api::names::OPERATOR_FIELD_MANAGER;
use isp_api::preserve::TrafficPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde_json::Value;

use crate::cluster::Service;

/// A field manager and the relevant fields that it owns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// The manager's name.
    pub manager: String,
    /// Whether it owns them by server-side apply.
    pub applies: bool,
    /// Whether it owns the field in question: `spec.externalTrafficPolicy`, or the required node
    /// affinity of a DaemonSet's pods.
    pub field: bool,
    /// The keys of the labels that it owns.
    pub labels: BTreeSet<String>,
    /// The keys of the annotations that it owns. Filled in for the operator only.
    pub annotations: BTreeSet<String>,
}

impl Owner {
    /// Whether it is the operator's field manager.
    pub fn is_us(&self) -> bool {
        self.applies && self.manager == OPERATOR_FIELD_MANAGER
    }
}

/// The managers of the field at `path` and of labels, read from managedFields.
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

/// A conflicting declaration of a field that must change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// The field manager.
    pub manager: String,
    /// The field.
    pub field: String,
    /// The declared value.
    pub value: String,
}

const KUBECTL_APPLY: &str = "kubectl apply";

/// The declaration of a policy other than Local, if any.
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

/// The declaration of another value for the label, if any.
pub fn label_declared(service: &Service, key: &str, value: &str) -> Option<Declared> {
    let declared = |manager: String, value: &str| Declared {
        manager,
        field: format!("metadata.labels[{key}]"),
        value: value.to_owned(),
    };
    if let Some(present) = service.labels.get(key).filter(|present| *present != value)
        && let Some(owner) = foreign(&service.owners).find(|owner| owner.labels.contains(key))
    {
        // Labels have no defaults, so every owner has set its label deliberately.
        return Some(declared(owner.manager.clone(), present));
    }
    let applied = service.last_applied.labels.get(key).filter(|applied| *applied != value)?;
    Some(declared(KUBECTL_APPLY.to_owned(), applied))
}

/// The manager that owns the field by update, without having declared it. It can get the field back
/// by an update.
pub fn undeclared_owner(owners: &[Owner]) -> Option<String> {
    foreign(owners).find(|owner| !owner.applies && owner.field).map(|owner| owner.manager.clone())
}

/// All field managers except the operator.
pub fn foreign(owners: &[Owner]) -> impl Iterator<Item = &Owner> {
    owners.iter().filter(|owner| !owner.is_us())
}

/// Whether the operator owns the field.
pub fn ours(owners: &[Owner]) -> bool {
    owners.iter().any(|owner| owner.is_us() && owner.field)
}

/// The manager that the API server assigns all fields to on the first apply to an object without
/// managedFields.
pub(crate) const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Whether our fields cannot be released by no longer applying them: managedFields do not list the
/// operator, or were emptied and also list the fields under [`BEFORE_FIRST_APPLY`].
pub(crate) fn is_lost(owners: &[Owner]) -> bool {
    let mine = owners.iter().find(|owner| owner.is_us());
    let blurred = |mine: &Owner| {
        owners.iter().filter(|owner| owner.manager == BEFORE_FIRST_APPLY).any(|before| {
            (before.field && mine.field) || before.labels.intersection(&mine.labels).next().is_some()
        })
    };
    mine.is_none_or(blurred)
}

/// The parsed last-applied annotation of `kubectl apply`.
pub(crate) fn last_applied(annotations: Option<&BTreeMap<String, String>>) -> Option<Value> {
    let text = annotations?.get("kubectl.kubernetes.io/last-applied-configuration")?;
    serde_json::from_str(text).ok()
}
