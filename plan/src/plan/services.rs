//! Steps 3 to 5 and their reversal: the label and the policy of each Service.
//!
//! | claimed Service | precondition | change |
//! |---|---|---|
//! | has no label | every non-ingress node has acknowledged; an ingress node has an endpoint | add the label |
//! | mode Beside: has the label, kube-proxies do not skip it | the same; the agents serve it on every node | let kube-proxies skip it |
//! | has the label, policy Cluster | the same | set the policy to Local |
//! | mode Filter: kube-proxies skip it | every non-ingress node has acknowledged | give it back to kube-proxies, wait, record that |
//! | has the label, no ingress node serves it, another node has an endpoint | | remove the label: every node shows the Service |
//! | policy Local, no ingress endpoint for 30 s, `FallBack` | | record the fallback and remove the label, then restore the policy |
//! | was opened or fell back, an ingress node serves it for 30 s | every non-ingress node has acknowledged | add the label, then set the policy to Local |
//!
//! | Service no longer claimed | change |
//! |---|---|
//! | the operator owns the policy | return it to its previous owner, or let it default |
//! | kube-proxies skip it | give it back to them, and wait |
//! | neither | return a replaced label, then release all remaining fields |
//!
//! While kube-proxies skip a Service, removing the label of the object shows it on every node as
//! well: the agents of mode Beside serve it in full.
//!
//! Fields that another manager has declared are not changed. A field that was reverted twice is not
//! set a third time.

mod beside;
mod opening;
mod records;
mod restore;

use std::collections::BTreeMap;

use isp_api::names::ORIGINAL_ANNOTATION;
use isp_api::preserve::{Mode, Original, ServiceState, ServiceStatus, TrafficPolicy};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use self::restore::{restore, retain};
use super::Plan;
use super::checks::{declared, declared_message, proxy_name_message, proxy_name_taken};
use super::ingress;
use super::rollout::Rollout;
use super::snapshot::{Deletion, Object, Snapshot};
use crate::action::{Action, ServiceStep, Shape};
use crate::cluster::{Key, Service};
use crate::ownership::{Owner, foreign, ours};
use crate::record::ServiceRecord;
use crate::waits::Wait;

/// How long ingress endpoints must be gone or back before the Service falls back or is labelled
/// again, in seconds.
const STEADY: u32 = 30;
/// How often a field is set before the operator stops contesting it.
const OFTEN: u32 = 2;

const NOBODY_ANSWERS: &str = "no ingress node has a ready endpoint: external traffic to it is dropped";
/// The status of each object's Services, by the object's index in the snapshot.
pub(super) type News = BTreeMap<usize, Vec<ServiceStatus>>;

pub(super) fn plan(snapshot: &Snapshot<'_>, rollout: &Rollout<'_>, plan: &mut Plan) -> News {
    let mut news = News::new();
    for (place, object) in snapshot.objects.iter().enumerate() {
        let (elsewhere, ready) = rollout.acknowledged(snapshot, object);
        let acknowledged = elsewhere == ready;
        let statuses = news.entry(place).or_default();
        for key in &object.claimed {
            let Some(service) = snapshot.service(key) else { continue };
            let mut wanted = Wanted {
                snapshot,
                rollout,
                object,
                key,
                service,
                acknowledged,
                served_by_ingress: ingress::served_by_ingress(snapshot.cluster, &snapshot.nodes, object, key),
                status: status(snapshot, object, key),
            };
            wanted.advance(plan);
            statuses.push(wanted.status);
        }
        for key in &object.touched {
            let Some(service) = snapshot.service(key) else { continue };
            let claimed = snapshot.claims.get(key);
            if object.deletion.is_none() && claimed.is_some() {
                // Still its own, or now claimed by another object.
                continue;
            }
            match object.deletion {
                Some(Deletion::Retain) => retain(snapshot, object, key, service, plan),
                _ => restore(snapshot, key, service, plan),
            }
            if claimed.is_none_or(|owner| *owner != place) {
                let mut status = status(snapshot, object, key);
                status.state = ServiceState::Restoring;
                statuses.push(status);
            }
        }
        for key in &object.missing {
            let mut status = status(snapshot, object, key);
            status.state = ServiceState::Missing;
            statuses.push(status);
        }
    }
    for key in &snapshot.orphans {
        if let Some(service) = snapshot.service(key) {
            restore(snapshot, key, service, plan);
        }
    }
    news
}

/// A Service that an object claims.
struct Wanted<'s, 'a> {
    snapshot: &'s Snapshot<'a>,
    rollout: &'s Rollout<'a>,
    object: &'s Object<'a>,
    key: &'a Key,
    service: &'a Service,
    acknowledged: bool,
    /// Whether an ingress node serves it now.
    served_by_ingress: bool,
    status: ServiceStatus,
}

impl Wanted<'_, '_> {
    fn advance(&mut self, plan: &mut Plan) {
        let (object, service) = (self.object, self.service);
        if let Some(other) = self.awaits_release_by() {
            return self.say(
                ServiceState::Waiting,
                &format!("waits until {other}, which is being deleted, has restored it"),
            );
        }
        let labelled = service.labels.get(&object.label.key) == Some(&object.label.value);
        let local = service.policy == Some(TrafficPolicy::Local);
        let taken_over = service.is_taken_over();
        let here = if labelled && local { ServiceState::Preserved } else { ServiceState::Waiting };
        // Takes precedence over all other checks: never hide a Service that only non-ingress nodes
        // can serve.
        if labelled && object.held && !service.deleting && !self.is_open() && self.must_open() {
            return self.open(plan);
        }
        if let Some(declared) = declared(object, service) {
            return self.say(ServiceState::Conflict, &declared_message(self.key, &declared));
        }
        if let Some(taken) = proxy_name_taken(object, service) {
            return self.say(ServiceState::Conflict, &proxy_name_message(self.key, &taken));
        }
        if !object.held || service.deleting {
            return self.say(here, if service.deleting { "it is being deleted" } else { "" });
        }
        if !service.exposed {
            return self.say(ServiceState::Waiting, "it is not exposed");
        }
        if self.is_open() {
            return self.stay_open(labelled, plan);
        }
        if !labelled {
            return self.label(plan);
        }
        if self.record_is_missing() {
            // The record annotation was removed, or it belongs to another object.
            let record = self.record();
            plan.actions.push(self.shape(record, ours(&service.owners), ServiceStep::Label));
        }
        match object.mode {
            Mode::Beside if !taken_over => return self.take_over(local, plan),
            Mode::Filter if service.depends_on_beside() => self.give_back(plan),
            Mode::Beside | Mode::Filter => {}
        }
        if local { self.keep(plan) } else { self.localise(plan) }
    }

    /// Step 3: adds the label.
    fn label(&mut self, plan: &mut Plan) {
        let mut record = self.record();
        if record.labelled >= OFTEN {
            let key = &self.object.label.key;
            return self.put_back(&format!("label {key}"), |owner| owner.labels.contains(key));
        }
        if !self.may_change() {
            return;
        }
        record.labelled += 1;
        plan.actions.push(self.shape(record, ours(&self.service.owners), ServiceStep::Label));
        self.say(ServiceState::Waiting, "gets the label");
    }

    /// Steps 4 and 5: sets the policy to Local.
    fn localise(&mut self, plan: &mut Plan) {
        let mut record = self.record();
        let fell_back = record.fell_back;
        self.status.state = if fell_back { ServiceState::FellBack } else { ServiceState::Labelled };
        if record.localised >= OFTEN && !fell_back {
            return self.put_back("spec.externalTrafficPolicy", |owner| owner.field);
        }
        if !self.may_change() {
            return;
        }
        record.fell_back = false;
        record.localised = if fell_back { 1 } else { record.localised + 1 };
        plan.actions.push(self.shape(record, true, ServiceStep::Localise));
    }

    /// Step 6: the policy is Local, and only ingress nodes show the Service.
    fn keep(&mut self, plan: &mut Plan) {
        let mut record = self.record();
        let some = self.status.ingress_endpoints > 0;
        let steady = self.steady_at(some);
        if some {
            if record.fell_back {
                // An endpoint appeared before the fallback was complete.
                record.fell_back = false;
                plan.actions.push(self.shape(record, true, ServiceStep::Localise));
            }
            return self.say(ServiceState::Preserved, "");
        }
        self.say(ServiceState::Preserved, NOBODY_ANSWERS);
        self.fall_back(steady, record, plan);
    }

    /// When the presence or absence of ingress endpoints will have lasted long enough.
    fn steady_at(&self, some: bool) -> Timestamp {
        let (object, service) = (self.object.uid.to_owned(), self.key.clone());
        self.snapshot.clock.end(Wait::Endpoints { object, service, some }, STEADY)
    }

    /// Checks the preconditions of every change, and reports the first that is not met.
    fn may_change(&mut self) -> bool {
        let begun = self.object.may_begin();
        let state = self.status.state;
        if self.status.ingress_endpoints == 0 {
            self.say(state, "waits for a ready endpoint on an ingress node");
        } else if !self.served_by_ingress {
            self.say(state, "waits until an ingress node with a ready endpoint shows it in full");
        } else if !self.object.lists(self.key) {
            // This plan writes that status.
            self.say(state, "waits until the object's status lists it");
        } else if !begun {
            self.say(state, "waiting for the conditions of the object");
        } else if !self.acknowledged {
            let follow = if self.service.balanced {
                "; its load balancer must honour healthCheckNodePort by then, because non-ingress nodes stop answering it"
            } else {
                "; from then on non-ingress nodes do not answer external clients"
            };
            let message = match self.object.mode {
                Mode::Filter => format!("waits until every non-ingress node has acknowledged{follow}"),
                Mode::Beside => format!("waits until every node has acknowledged{follow}"),
            };
            self.say(state, &message);
        } else {
            return true;
        }
        false
    }

    /// The object that is being deleted and has not yet released the Service.
    fn awaits_release_by(&self) -> Option<&str> {
        let deleted = self.snapshot.objects.iter().filter(|object| object.deletion.is_some());
        let mut holding = deleted.filter(|object| object.touched.contains(&self.key));
        holding.next().map(|object| object.name)
    }

    fn shape(&self, record: ServiceRecord, local: bool, step: ServiceStep) -> Action {
        shape_service(self.key, self.service, self.shape_of(record, local), step)
    }

    fn shape_of(&self, record: ServiceRecord, local: bool) -> Shape {
        let taken_over = self.service.owns_proxy_name();
        Shape { label: Some(self.object.label.clone()), taken_over, local, record: Some(record) }
    }

    /// Reports that another manager keeps reverting the field.
    fn put_back(&mut self, field: &str, owns: impl Fn(&Owner) -> bool) {
        let managers: Vec<_> = foreign(&self.service.owners)
            .filter(|owner| owns(owner))
            .map(|owner| format!("{:?}", owner.manager))
            .collect();
        let who = if managers.is_empty() { "somebody".to_owned() } else { managers.join(" and ") };
        let message = format!(
            "Service {}: {who} keeps reverting {field}, so the operator has stopped setting it: make that writer stop, then change the \
             object's spec or remove the annotation {ORIGINAL_ANNOTATION} from the Service",
            self.key,
        );
        self.say(ServiceState::Conflict, &message);
    }

    fn say(&mut self, state: ServiceState, message: &str) {
        self.status.state = state;
        self.status.message = (!message.is_empty()).then(|| message.to_owned());
    }
}

fn shape_service(key: &Key, service: &Service, shape: Shape, step: ServiceStep) -> Action {
    let (service, identity) = (key.clone(), service.identity.clone());
    Action::ShapeService { service, identity, shape: Box::new(shape), step }
}

/// The parts of a Service's status that do not depend on its state.
fn status(snapshot: &Snapshot<'_>, object: &Object<'_>, key: &Key) -> ServiceStatus {
    let service = snapshot.service(key);
    let said = object.written.status.as_ref().and_then(|status| {
        let mut services = status.services.iter();
        services.find(|said| said.namespace == key.namespace && said.name == key.name)
    });
    let ingress_endpoints = snapshot.ingress_endpoints(object, key);
    // The API server stores times in whole seconds.
    let now = Timestamp::from_second(snapshot.now.as_second()).unwrap_or(snapshot.now);
    let same = said.filter(|said| (said.ingress_endpoints == 0) == (ingress_endpoints == 0));
    let since = same.and_then(|said| said.ingress_endpoints_since.clone());
    let written = service.and_then(|service| service.record.as_ref());
    let original = written.map(|record| Original {
        external_traffic_policy: record.policy,
        health_check_node_port: record.health_check_node_port,
    });
    let changed = service.is_some_and(|service| service.owners.iter().any(Owner::is_us));
    ServiceStatus {
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        original: original.or_else(|| said.filter(|_| changed).and_then(|said| said.original.clone())),
        addresses: service.map(|service| service.addresses.clone()).unwrap_or_default(),
        ingress_endpoints,
        ingress_endpoints_since: Some(since.unwrap_or(Time(now))),
        state: ServiceState::Waiting,
        served_beside: service.is_some_and(Service::depends_on_beside).then_some(true),
        message: None,
    }
}
