//! Services that no ingress node can serve: every node shows them, and with `FallBack` they give up
//! the policy, until an ingress node serves them again.

use isp_api::preserve::{ServiceState, WhenNoIngressEndpoint};
use k8s_openapi::jiff::Timestamp;

use super::restore::give_up_policy;
use super::{NOBODY_ANSWERS, Wanted, shape_service};
use crate::action::{Action, ServiceStep, Shape};
use crate::ownership::ours;
use crate::plan::Plan;
use crate::record::ServiceRecord;

const OPEN: &str = "no ingress node has a ready endpoint: every node shows the Service, so that those with an endpoint answer";

impl Wanted<'_, '_> {
    /// Whether the Service was opened or fell back for this object.
    pub(super) fn is_open(&self) -> bool {
        let record = self.service.record.as_ref().filter(|record| record.object == self.object.name);
        record.is_some_and(|record| record.opened)
    }

    /// Whether hiding it would cut it off: no ingress node serves it, but another node has an
    /// endpoint.
    pub(super) fn must_open(&self) -> bool {
        let could = || self.snapshot.cluster.ready_endpoints(self.key).values().any(|count| *count > 0);
        !self.served_by_ingress && could()
    }

    /// Removes the label, so that every node shows the Service.
    pub(super) fn open(&mut self, plan: &mut Plan) {
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
    pub(super) fn stay_open(&mut self, labelled: bool, plan: &mut Plan) {
        let mut record = self.record();
        let fell_back = record.fell_back;
        let state = if fell_back { ServiceState::FellBack } else { ServiceState::Open };
        if labelled && !self.served_by_ingress {
            return self.open(plan);
        }
        let steady = self.steady_at(self.served_by_ingress);
        if !self.served_by_ingress {
            self.say(state, if fell_back { "" } else { OPEN });
            return self.fall_back(steady, record, plan);
        }
        self.status.state = state;
        if !self.may_change() {
            return;
        }
        if self.snapshot.now < steady {
            plan.wake_at(steady);
            return self.say(state, "an ingress node has an endpoint again; waits to see whether it stays");
        }
        (record.opened, record.labelled) = (false, 1);
        plan.actions.push(self.shape(record, ours(&self.service.owners), ServiceStep::Label));
        self.say(state, "gets the label");
    }

    /// With `FallBack`, gives up the policy once no ingress node has had an endpoint for a while.
    pub(super) fn fall_back(&mut self, steady: Timestamp, mut record: ServiceRecord, plan: &mut Plan) {
        let falls_back = self.object.written.spec.when_no_ingress_endpoint == WhenNoIngressEndpoint::FallBack
            && ours(&self.service.owners);
        if !falls_back {
            return;
        }
        if record.fell_back {
            plan.actions.push(give_up_policy(self.key, self.service));
        } else if self.snapshot.now >= steady {
            (record.fell_back, record.opened) = (true, true);
            plan.actions.push(self.shape_open(record, ServiceStep::FallBack));
        } else {
            plan.wake_at(steady);
        }
    }

    /// The same without the label. The policy does not change.
    fn shape_open(&self, record: ServiceRecord, step: ServiceStep) -> Action {
        let local = ours(&self.service.owners);
        let shape = Shape { label: None, ..self.shape_of(record, local) };
        shape_service(self.key, self.service, shape, step)
    }
}
