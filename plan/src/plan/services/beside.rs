//! Services that pass between kube-proxies and the agents of mode Beside.

use isp_api::names::{OPERATOR_FIELD_MANAGER, SERVICE_PROXY_NAME_LABEL};
use isp_api::preserve::ServiceState;

use super::{OFTEN, Wanted, shape_service};
use crate::action::{Action, Returned, ServiceStep};
use crate::cluster::{Key, Service};
use crate::ownership::ours;
use crate::plan::Plan;
use crate::plan::snapshot::Snapshot;
use crate::record::ServiceRecord;
use crate::waits::Wait;

/// How long kube-proxies may take to serve a Service again that they skipped, in seconds. It covers
/// a `minSyncPeriod` of ten seconds and the failure of one sync.
const GIVEN_BACK: u32 = 30;

impl Wanted<'_, '_> {
    /// Mode Beside, between steps 3 and 5: lets kube-proxies skip the Service, once the agents
    /// serve it on every node.
    pub(super) fn take_over(&mut self, local: bool, plan: &mut Plan) {
        let mut record = self.record();
        if record.taken_over >= OFTEN {
            let field = format!("label {SERVICE_PROXY_NAME_LABEL}");
            return self.put_back(&field, |owner| owner.labels.contains(SERVICE_PROXY_NAME_LABEL));
        }
        self.status.state = ServiceState::Waiting;
        if !self.may_change() {
            return;
        }
        if !self.rollout.serves_everywhere(self.snapshot, self.object, self.key) {
            let message = if local {
                "waits until the agents serve it on every node; until then kube-proxy serves it as before"
            } else {
                "waits until the agents serve it on every node"
            };
            return self.say(ServiceState::Waiting, message);
        }
        record.taken_over += 1;
        record.skipped = true;
        let mut shape = self.shape_of(record, ours(&self.service.owners));
        shape.taken_over = true;
        plan.actions.push(shape_service(self.key, self.service, shape, ServiceStep::TakeOver));
        self.say(ServiceState::Waiting, "is taken over from kube-proxy");
    }

    /// After a change from mode Beside to Filter: gives the Service back to kube-proxies, once all
    /// of them read it through their agents.
    pub(super) fn give_back(&mut self, plan: &mut Plan) {
        if !self.acknowledged || !self.object.may_begin() {
            return;
        }
        if self.service.is_taken_over() {
            // The agents must know that they have to go on.
            if self.object.written.is_served_beside() {
                plan.actions.push(to_kube_proxy(self.key, self.service));
            }
        } else if self.is_served_by_kube_proxies(plan) {
            let record = ServiceRecord { skipped: false, ..self.record() };
            plan.actions.push(self.shape(record, ours(&self.service.owners), ServiceStep::GivenBack));
        }
    }

    fn is_served_by_kube_proxies(&self, plan: &mut Plan) -> bool {
        is_served_by_kube_proxies(self.snapshot, self.key, plan)
    }
}

/// Whether kube-proxies have had time to serve a Service again that they skipped. They do not
/// acknowledge it.
pub(super) fn is_served_by_kube_proxies(snapshot: &Snapshot<'_>, key: &Key, plan: &mut Plan) -> bool {
    let end = snapshot.clock.end(Wait::GivenBack { service: key.clone() }, GIVEN_BACK);
    if snapshot.now < end {
        plan.wake_at(end);
    }
    snapshot.now >= end
}

/// Removes the label that makes kube-proxies skip the Service, whoever owns it: its value means the
/// agents, which are about to leave.
pub(super) fn to_kube_proxy(key: &Key, service: &Service) -> Action {
    Action::ReturnFields {
        service: key.clone(),
        identity: service.identity.clone(),
        owner: OPERATOR_FIELD_MANAGER.to_owned(),
        fields: Returned::ToKubeProxy,
    }
}
