//! The way back of a Service: its policy, its label, and everything else of the operator's.

use isp_api::names::{OPERATOR_FIELD_MANAGER, SERVICE_LABEL};
use isp_api::preserve::{ServiceLabel, TrafficPolicy};

use super::super::snapshot::{Object, Snapshot};
use super::shape_service;
use crate::action::{Action, Returned, ServiceStep, Shape};
use crate::cluster::{Key, Service};
use crate::ownership::{Owner, foreign, is_lost, ours};
use crate::record::{OriginalLabel, ServiceRecord};

/// One step of the way back: the policy first. Anybody who may edit the Service can write its record, so only a label that marks preserved
/// Services is ever returned; nobody gets another one set in somebody else's name.
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

/// The way back in one step, by values: nothing tells any more which fields are ours. What somebody has declared since stays.
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

/// The policy goes to whom it was taken from, who then owns it as before, or to its default.
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

/// Marks a Service to stay as it is.
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

/// The label that the operator gave.
fn our_label(service: &Service) -> Option<ServiceLabel> {
    let mine = service.owners.iter().find(|owner| owner.is_us())?;
    mine.labels
        .iter()
        .find_map(|key| Some(ServiceLabel { key: key.clone(), value: service.labels.get(key)?.clone() }))
}
