//! Restores a Service: its policy, its label, then all other fields of the operator.

use isp_api::names::{OPERATOR_FIELD_MANAGER, SERVICE_LABEL};
use isp_api::preserve::{ServiceLabel, TrafficPolicy};

use super::super::snapshot::{Object, Snapshot};
use super::shape_service;
use crate::action::{Action, Returned, ServiceStep, Shape};
use crate::cluster::{Key, Service};
use crate::ownership::{Owner, foreign, is_lost, ours};
use crate::record::{OriginalLabel, ServiceRecord};

/// One step of restoring a Service, the policy first. Anyone who may edit the Service can forge its
/// record. Therefore only label keys that mark preserved Services are returned: the record cannot
/// be used to set any other label as another field manager.
pub(super) fn restore(snapshot: &Snapshot<'_>, key: &Key, service: &Service) -> Action {
    let record = service.record.as_ref();
    if let Some(record) = record.filter(|_| is_lost(&service.owners)) {
        return undo(snapshot, key, service, record);
    }
    if ours(&service.owners) {
        let Some(record) = record else {
            let shape = Shape { label: our_label(service), local: false, record: None };
            return shape_service(key, service, shape, ServiceStep::GiveUpPolicy);
        };
        return give_up_policy(key, service, record);
    }
    let marks = |label: &OriginalLabel| {
        label.key == SERVICE_LABEL || snapshot.objects.iter().any(|object| object.label.key == label.key)
    };
    let taken = record.and_then(|record| record.label.clone());
    if let Some(label) = taken.filter(marks)
        && let Some(owner) = label.owner.clone()
        && service.labels.get(&label.key) != Some(&label.value)
    {
        let (service_key, identity) = (key.clone(), service.identity.clone());
        return Action::ReturnFields {
            service: service_key,
            identity,
            owner,
            fields: Returned::Label(label),
        };
    }
    shape_service(key, service, Shape::default(), ServiceStep::Release)
}

/// Restores all values in one step, for Services whose managedFields no longer tell which fields
/// are ours. Fields that another manager has applied since are kept.
fn undo(snapshot: &Snapshot<'_>, key: &Key, service: &Service, record: &ServiceRecord) -> Action {
    let declares =
        |owns: &dyn Fn(&Owner) -> bool| foreign(&service.owners).any(|owner| owner.applies && owns(owner));
    let changed = service.policy == Some(TrafficPolicy::Local) && record.policy == TrafficPolicy::Cluster;
    let object = snapshot.objects.iter().find(|object| object.name == record.object);
    let label = object.map(|object| &object.label).filter(|label| {
        service.labels.get(&label.key) == Some(&label.value)
            && !declares(&|owner| owner.labels.contains(&label.key))
    });
    let former = |label: &ServiceLabel| {
        let former = record.label.as_ref().filter(|former| former.key == label.key);
        (label.key.clone(), former.map(|former| former.value.clone()))
    };
    let fields =
        Returned::Everything { policy: changed && !declares(&|owner| owner.field), label: label.map(former) };
    let owner = record.policy_owner.clone().unwrap_or_else(|| OPERATOR_FIELD_MANAGER.to_owned());
    Action::ReturnFields { service: key.clone(), identity: service.identity.clone(), owner, fields }
}

/// Returns the policy to its previous owner by a write as that field manager, or lets it default.
pub(super) fn give_up_policy(key: &Key, service: &Service, record: &ServiceRecord) -> Action {
    let shared = foreign(&service.owners).any(|owner| owner.field);
    match &record.policy_owner {
        Some(owner) if !shared && record.policy == TrafficPolicy::Cluster => Action::ReturnFields {
            service: key.clone(),
            identity: service.identity.clone(),
            owner: owner.clone(),
            fields: Returned::Policy,
        },
        _ => {
            let shape = Shape { label: our_label(service), local: false, record: Some(record.clone()) };
            shape_service(key, service, shape, ServiceStep::GiveUpPolicy)
        }
    }
}

/// Marks a Service as retained, without changing it.
pub(super) fn retain(object: &Object<'_>, key: &Key, service: &Service) -> Option<Action> {
    let mut record = service.record.clone()?;
    if record.retained {
        return None;
    }
    record.retained = true;
    object.name.clone_into(&mut record.object);
    let shape = Shape { label: our_label(service), local: ours(&service.owners), record: Some(record) };
    Some(shape_service(key, service, shape, ServiceStep::Retain))
}

/// The label that the operator's field manager owns.
fn our_label(service: &Service) -> Option<ServiceLabel> {
    let mine = service.owners.iter().find(|owner| owner.is_us())?;
    mine.labels
        .iter()
        .find_map(|key| Some(ServiceLabel { key: key.clone(), value: service.labels.get(key)?.clone() }))
}
