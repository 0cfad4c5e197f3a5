//! Restores a Service: its policy, its label, then all other fields of the operator.

use isp_api::names::{OPERATOR_FIELD_MANAGER, SERVICE_LABEL, SERVICE_PROXY_NAME_LABEL};
use isp_api::preserve::{ServiceLabel, TrafficPolicy};

use super::super::snapshot::{Object, Snapshot};
use super::beside::{is_served_by_kube_proxies, to_kube_proxy};
use super::{Plan, shape_service};
use crate::action::{Action, Returned, ServiceStep, Shape};
use crate::cluster::{Key, Service};
use crate::ownership::{BEFORE_FIRST_APPLY, Owner, foreign, is_lost, ours};
use crate::record::{OriginalLabel, ServiceRecord};
use crate::waits::Wait;

/// One step of restoring a Service: the policy first, then kube-proxies get it back, then the rest.
///
/// Anyone who may edit the Service can forge its record. Therefore only label keys that mark
/// preserved Services are returned: the record cannot be used to set any other label as another
/// field manager.
pub(super) fn restore(snapshot: &Snapshot<'_>, key: &Key, service: &Service, plan: &mut Plan) {
    let lost = is_lost(&service.owners) || is_label_lost(snapshot, service);
    let action = if ours(&service.owners) && !lost {
        give_up_policy(key, service)
    } else if service.is_taken_over() {
        if service.record.is_none() {
            // Starts the wait: nothing on the Service will tell later that it was taken over.
            is_served_by_kube_proxies(snapshot, key, plan);
        }
        to_kube_proxy(key, service)
    } else if is_being_given_back(snapshot, key, service) && !is_served_by_kube_proxies(snapshot, key, plan) {
        return;
    } else {
        release(snapshot, key, service, lost)
    };
    plan.actions.push(action);
}

fn is_being_given_back(snapshot: &Snapshot<'_>, key: &Key, service: &Service) -> bool {
    service.depends_on_beside() || snapshot.clock.is_known(&Wait::GivenBack { service: key.clone() })
}

/// Restores the rest of a Service that kube-proxies serve with its original policy.
fn release(snapshot: &Snapshot<'_>, key: &Key, service: &Service, lost: bool) -> Action {
    let record = service.record.as_ref();
    if let Some(record) = record.filter(|_| lost) {
        return undo(snapshot, key, service, record);
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

/// Whether managedFields were emptied while our label was on the Service, so that releasing our
/// fields would leave it there.
fn is_label_lost(snapshot: &Snapshot<'_>, service: &Service) -> bool {
    let record = service.record.as_ref();
    let Some(label) = record.and_then(|record| label_of(snapshot, service, record)) else { return false };
    let mut before = service.owners.iter().filter(|owner| owner.manager == BEFORE_FIRST_APPLY);
    before.any(|owner| owner.labels.contains(&label.key))
}

/// The label that the record's object has put on the Service, if it is still there. Of an object
/// that is gone, only a label that we own or the usual one is known.
fn label_of(snapshot: &Snapshot<'_>, service: &Service, record: &ServiceRecord) -> Option<ServiceLabel> {
    let object = snapshot.objects.iter().find(|object| object.name == record.object);
    let label = object.map(|object| object.label.clone()).or_else(|| our_label(service));
    let usual = || ServiceLabel { key: SERVICE_LABEL.to_owned(), value: record.object.clone() };
    Some(label.unwrap_or_else(usual)).filter(|label| service.labels.get(&label.key) == Some(&label.value))
}

/// Restores all values in one step, for Services whose managedFields no longer tell which fields
/// are ours. Fields that another manager has applied since are kept.
fn undo(snapshot: &Snapshot<'_>, key: &Key, service: &Service, record: &ServiceRecord) -> Action {
    let declares =
        |owns: &dyn Fn(&Owner) -> bool| foreign(&service.owners).any(|owner| owner.applies && owns(owner));
    let changed = service.policy == Some(TrafficPolicy::Local) && record.policy == TrafficPolicy::Cluster;
    let label = label_of(snapshot, service, record);
    let label = label.filter(|label| !declares(&|owner| owner.labels.contains(&label.key)));
    let former = |label: ServiceLabel| {
        let former = record.label.as_ref().filter(|former| former.key == label.key);
        let value = former.map(|former| former.value.clone());
        (label.key, value)
    };
    let fields =
        Returned::Everything { policy: changed && !declares(&|owner| owner.field), label: label.map(former) };
    let owner = record.policy_owner.clone().unwrap_or_else(|| OPERATOR_FIELD_MANAGER.to_owned());
    Action::ReturnFields { service: key.clone(), identity: service.identity.clone(), owner, fields }
}

/// Returns the policy to its previous owner by a write as that field manager, or lets it default.
pub(super) fn give_up_policy(key: &Key, service: &Service) -> Action {
    let shared = foreign(&service.owners).any(|owner| owner.field);
    let record = service.record.as_ref();
    let owner = record.filter(|record| !shared && record.policy == TrafficPolicy::Cluster);
    if let Some(owner) = owner.and_then(|record| record.policy_owner.clone()) {
        let (service, identity) = (key.clone(), service.identity.clone());
        return Action::ReturnFields { service, identity, owner, fields: Returned::Policy };
    }
    let shape = Shape { local: false, ..as_it_is(service) };
    shape_service(key, service, shape, ServiceStep::GiveUpPolicy)
}

/// Marks a Service as retained, once kube-proxies serve it: without its object no agent of mode
/// Beside does.
pub(super) fn retain(
    snapshot: &Snapshot<'_>,
    object: &Object<'_>,
    key: &Key,
    service: &Service,
    plan: &mut Plan,
) {
    let Some(mut record) = service.record.clone().filter(|record| !record.retained) else { return };
    if service.is_taken_over() {
        return plan.actions.push(to_kube_proxy(key, service));
    }
    if service.depends_on_beside() && !is_served_by_kube_proxies(snapshot, key, plan) {
        return;
    }
    (record.retained, record.skipped) = (true, false);
    object.name.clone_into(&mut record.object);
    let mut shape = Shape { record: Some(record), ..as_it_is(service) };
    if is_lost(&service.owners) {
        // managedFields were emptied. A policy that is applied again can be told from one that
        // others have set, and a later cleanup restores it.
        shape.local |= service.policy == Some(TrafficPolicy::Local);
    }
    plan.actions.push(shape_service(key, service, shape, ServiceStep::Retain));
}

/// The operator's fields of a Service, unchanged.
fn as_it_is(service: &Service) -> Shape {
    Shape {
        label: our_label(service),
        taken_over: service.owns_proxy_name(),
        local: ours(&service.owners),
        record: service.record.clone(),
    }
}

/// The label of an object that the operator's field manager owns.
fn our_label(service: &Service) -> Option<ServiceLabel> {
    let mine = service.owners.iter().find(|owner| owner.is_us())?;
    mine.labels
        .iter()
        .filter(|key| *key != SERVICE_PROXY_NAME_LABEL)
        .find_map(|key| Some(ServiceLabel { key: key.clone(), value: service.labels.get(key)?.clone() }))
}
