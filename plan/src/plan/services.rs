//! Steps 3 to 5 and their reversal: the label and the policy of each Service.
//!
//! | claimed Service | precondition | change |
//! |---|---|---|
//! | has no label | every non-ingress node has acknowledged; an ingress node has an endpoint | add the label |
//! | has the label, policy Cluster | the same | set the policy to Local |
//! | has the label, no ingress node serves it, another node has an endpoint | | remove the label: every node shows the Service |
//! | policy Local, no ingress endpoint for 30 s, `FallBack` | | record the fallback and remove the label, then restore the policy |
//! | was opened or fell back, an ingress node serves it for 30 s | every non-ingress node has acknowledged | add the label, then set the policy to Local |
//!
//! | Service no longer claimed | change |
//! |---|---|
//! | the operator owns the policy | return it to its previous owner, or let it default |
//! | the operator does not own it | return a replaced label, then release all remaining fields |
//!
//! Fields that another manager has declared are not changed. A field that was reverted twice is not
//! set a third time.

mod restore;

use std::collections::BTreeMap;

use isp_api::names::ORIGINAL_ANNOTATION;
use isp_api::preserve::{Original, ServiceState, ServiceStatus, TrafficPolicy, WhenNoIngressEndpoint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use self::restore::{give_up_policy, restore, retain};
use super::Plan;
use super::checks::{declared, declared_message, policy};
use super::ingress;
use super::rollout::Rollout;
use super::snapshot::{Deletion, Object, Snapshot};
use crate::action::{Action, ServiceStep, Shape};
use crate::cluster::{Key, Service};
use crate::ownership::{Owner, foreign, ours, undeclared_owner};
use crate::record::{OriginalLabel, ServiceRecord};
use crate::waits::Wait;

/// How long ingress endpoints must be gone or back before the Service falls back or is labelled
/// again, in seconds.
const STEADY: u32 = 30;
/// How often a field is set before the operator stops contesting it.
const OFTEN: u32 = 2;

const NOBODY_ANSWERS: &str = "no ingress node has a ready endpoint: external traffic to it is dropped";
const OPEN: &str = "no ingress node has a ready endpoint: every node shows the Service, so that those with an endpoint answer";

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
                object,
                key,
                service,
                acknowledged,
                has_way_in: ingress::has_way_in(snapshot.cluster, &snapshot.nodes, object, key),
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
                Some(Deletion::Retain) => plan.actions.extend(retain(object, key, service)),
                _ => plan.actions.push(restore(snapshot, key, service)),
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
            plan.actions.push(restore(snapshot, key, service));
        }
    }
    news
}

/// A Service that an object claims.
struct Wanted<'s, 'a> {
    snapshot: &'s Snapshot<'a>,
    object: &'s Object<'a>,
    key: &'a Key,
    service: &'a Service,
    acknowledged: bool,
    /// Whether an ingress node serves it now.
    has_way_in: bool,
    status: ServiceStatus,
}

impl Wanted<'_, '_> {
    fn advance(&mut self, plan: &mut Plan) {
        let (object, service) = (self.object, self.service);
        if let Some(other) = self.held_by_one_that_goes() {
            return self.say(
                ServiceState::Waiting,
                &format!("waits until it is given back by {other}, which is being deleted"),
            );
        }
        let labelled = service.labels.get(&object.label.key) == Some(&object.label.value);
        let local = service.policy == Some(TrafficPolicy::Local);
        let here = if labelled && local { ServiceState::Preserved } else { ServiceState::Waiting };
        // Takes precedence over all other checks: never hide a Service that only non-ingress nodes
        // can serve.
        if labelled && object.held && !service.deleting && !self.is_open() && self.must_open() {
            return self.open(plan);
        }
        if let Some(declared) = declared(object, service) {
            return self.say(ServiceState::Conflict, &declared_message(self.key, &declared));
        }
        if !object.held || service.deleting {
            return self.say(here, if service.deleting { "it is being deleted" } else { "" });
        }
        if !service.exposed {
            return self.say(ServiceState::Waiting, "it cannot be reached from outside");
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
        if local { self.keep(plan) } else { self.localise(plan) }
    }

    /// Whether the Service was opened or fell back for this object.
    fn is_open(&self) -> bool {
        let record = self.service.record.as_ref().filter(|record| record.object == self.object.name);
        record.is_some_and(|record| record.opened)
    }

    /// Whether hiding it would cut it off: no ingress node serves it, but another node has an
    /// endpoint.
    fn must_open(&self) -> bool {
        let could = || self.snapshot.cluster.ready_endpoints(self.key).values().any(|count| *count > 0);
        !self.has_way_in && could()
    }

    /// Removes the label, so that every node shows the Service.
    fn open(&mut self, plan: &mut Plan) {
        let ours = self.service.owners.iter().find(|owner| owner.is_us());
        if !ours.is_some_and(|owner| owner.labels.contains(&self.object.label.key)) {
            // Another manager owns the label, so removing ours has no effect.
            return self.say(ServiceState::Preserved, NOBODY_ANSWERS);
        }
        let record = ServiceRecord { opened: true, ..self.record() };
        plan.actions.push(self.shape_open(record, ServiceStep::Open));
        self.say(ServiceState::Open, OPEN);
    }

    /// Handles a Service that every node shows until an ingress node serves it again.
    fn stay_open(&mut self, labelled: bool, plan: &mut Plan) {
        let mut record = self.record();
        let fell_back = record.fell_back;
        let state = if fell_back { ServiceState::FellBack } else { ServiceState::Open };
        if labelled && !self.has_way_in {
            return self.open(plan);
        }
        let steady = self.steady_at(self.has_way_in);
        if !self.has_way_in {
            self.say(state, if fell_back { "" } else { OPEN });
            return self.fall_back(steady, record, plan);
        }
        self.status.state = state;
        if !self.may_change() {
            return;
        }
        if self.snapshot.now < steady {
            plan.wake_at(steady);
            return self.say(state, "an endpoint is back on an ingress node; waits whether it stays");
        }
        (record.opened, record.labelled) = (false, 1);
        plan.actions.push(self.shape(record, ours(&self.service.owners), ServiceStep::Label));
        self.say(state, "gets the label");
    }

    /// With `FallBack`, gives up the policy once no ingress node has had an endpoint for a while.
    fn fall_back(&mut self, steady: Timestamp, mut record: ServiceRecord, plan: &mut Plan) {
        let falls_back = self.object.written.spec.when_no_ingress_endpoint == WhenNoIngressEndpoint::FallBack
            && ours(&self.service.owners);
        if !falls_back {
            return;
        }
        if record.fell_back {
            plan.actions.push(give_up_policy(self.key, self.service, &record));
        } else if self.snapshot.now >= steady {
            (record.fell_back, record.opened) = (true, true);
            plan.actions.push(self.shape_open(record, ServiceStep::FallBack));
        } else {
            plan.wake_at(steady);
        }
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
        } else if !self.has_way_in {
            self.say(state, "waits until an ingress node with a ready endpoint shows it in full");
        } else if !self.object.lists(self.key) {
            // This plan writes that status.
            self.say(state, "waits until the object's status lists it");
        } else if !begun {
            self.say(state, "waiting for the conditions of the object");
        } else if !self.acknowledged {
            let follow = if self.service.balanced {
                "; its load balancer must follow healthCheckNodePort by then, for non-ingress nodes stop answering it"
            } else {
                "; from then on non-ingress nodes do not answer clients from outside"
            };
            self.say(state, &format!("waits until every non-ingress node has acknowledged{follow}"));
        } else {
            return true;
        }
        false
    }

    /// The object that is being deleted and has not yet released the Service.
    fn held_by_one_that_goes(&self) -> Option<&str> {
        let deleted = self.snapshot.objects.iter().filter(|object| object.deletion.is_some());
        let mut holding = deleted.filter(|object| object.touched.contains(&self.key));
        holding.next().map(|object| object.name)
    }

    fn record_is_missing(&self) -> bool {
        self.service.record.as_ref().is_none_or(|record| record.object != self.object.name || record.retained)
    }

    /// The current record, or a new one. The counts apply to one generation: a change of the spec
    /// resets them.
    fn record(&self) -> ServiceRecord {
        let (object, service) = (self.object, self.service);
        let known = service.record.clone().unwrap_or_else(|| self.first_record());
        let same = known.object == object.name && known.generation == object.generation;
        let (labelled, localised) = if same { (known.labelled, known.localised) } else { (0, 0) };
        ServiceRecord {
            object: object.name.to_owned(),
            generation: object.generation,
            labelled,
            localised,
            retained: false,
            ..known
        }
    }

    /// Taken from the status if known there, otherwise from the Service as it is.
    fn first_record(&self) -> ServiceRecord {
        let (object, service) = (self.object, self.service);
        let told = self.status.original.clone().filter(|_| service.owners.iter().any(Owner::is_us));
        let original = told.unwrap_or_else(|| Original {
            external_traffic_policy: policy(service),
            health_check_node_port: service.health_check_node_port,
        });
        let key = &object.label.key;
        let before = service.labels.get(key).filter(|value| **value != object.label.value);
        let label = before.and_then(|value| {
            let owner = foreign(&service.owners).find(|owner| owner.labels.contains(key))?;
            Some(OriginalLabel { key: key.clone(), value: value.clone(), owner: Some(owner.manager.clone()) })
        });
        ServiceRecord {
            object: object.name.to_owned(),
            policy: original.external_traffic_policy,
            policy_owner: undeclared_owner(&service.owners),
            health_check_node_port: original.health_check_node_port,
            label,
            generation: object.generation,
            labelled: 0,
            localised: 0,
            opened: false,
            fell_back: false,
            retained: false,
        }
    }

    fn shape(&self, record: ServiceRecord, local: bool, step: ServiceStep) -> Action {
        let shape = Shape { label: Some(self.object.label.clone()), local, record: Some(record) };
        shape_service(self.key, self.service, shape, step)
    }

    /// The same without the label. The policy does not change.
    fn shape_open(&self, record: ServiceRecord, step: ServiceStep) -> Action {
        let shape = Shape { label: None, local: ours(&self.service.owners), record: Some(record) };
        shape_service(self.key, self.service, shape, step)
    }

    /// Reports that another manager keeps reverting the field.
    fn put_back(&mut self, field: &str, owns: impl Fn(&Owner) -> bool) {
        let managers: Vec<_> = foreign(&self.service.owners)
            .filter(|owner| owns(owner))
            .map(|owner| format!("{:?}", owner.manager))
            .collect();
        let who = if managers.is_empty() { "somebody".to_owned() } else { managers.join(" and ") };
        let message = format!(
            "Service {}: {who} keeps putting back {field} and is not fought: make it leave the field alone, then change the \
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
        message: None,
    }
}
