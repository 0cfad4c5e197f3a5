//! The operator's metrics. Label values are closed sets; names of objects appear only in logs and
//! Events.

mod calls;
mod gauges;

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use isp_plan::Action;
use isp_plan::action::NodeStep;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

pub(crate) use self::calls::Call;
use self::gauges::{ByPhase, ByState};

#[cfg(test)]
mod tests;

/// The result of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelValue)]
pub(crate) enum Outcome {
    Done,
    /// Conflict: the object has changed since it was read.
    Stale,
    /// The object no longer exists.
    Gone,
    /// The API server throttles requests (429).
    Throttled,
    ServerError,
    Unreachable,
    TimedOut,
    /// Rejected: missing permissions or an invalid object.
    Refused,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByAction {
    action: &'static str,
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
enum Direction {
    /// From kube-proxy to the agent.
    Over,
    /// From the agent back to kube-proxy.
    Back,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
enum Ending {
    Done,
    /// The agent missed its deadline.
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByHandover {
    direction: Direction,
    outcome: Ending,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByDirection {
    direction: Direction,
}

/// All metrics of the operator.
#[derive(Debug)]
pub(crate) struct Metrics {
    actions: Family<ByAction, Counter>,
    handovers: Family<ByHandover, Counter>,
    handover_duration: Family<ByDirection, Histogram, fn() -> Histogram>,
    plan_duration: Histogram,
    calls: Family<Call, Counter>,
    leader: Gauge,
    nodes: Family<ByState, Gauge>,
    objects: Family<ByPhase, Gauge>,
    services_without_ingress_endpoint: Gauge,
    events_dropped: Counter<u64, AtomicU64>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            actions: Family::default(),
            handovers: Family::default(),
            // Buckets from 0.5 s to about 17 min.
            handover_duration: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.5, 2.0, 12))
            }),
            // Buckets from 0.1 ms to about 3.3 s.
            plan_duration: Histogram::new(exponential_buckets(0.0001, 2.0, 16)),
            calls: Family::default(),
            leader: Gauge::default(),
            nodes: Family::default(),
            objects: Family::default(),
            services_without_ingress_endpoint: Gauge::default(),
            events_dropped: Counter::default(),
        }
    }
}

impl Metrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("isp_operator");
        registry.register("actions", "Actions, by kind and outcome", self.actions.clone());
        registry.register("handovers", "Completed handovers of nodes", self.handovers.clone());
        registry.register_with_unit(
            "handover_duration",
            "Duration of a node's handover",
            Unit::Seconds,
            self.handover_duration.clone(),
        );
        registry.register_with_unit(
            "plan_duration",
            "Duration of planning",
            Unit::Seconds,
            self.plan_duration.clone(),
        );
        registry.register("api_calls", "Requests to the API server", self.calls.clone());
        registry.register("leader", "Whether this replica is the leader", self.leader.clone());
        registry.register(
            "nodes",
            "Nodes by the progress of their handover from kube-proxy to the agent",
            self.nodes.clone(),
        );
        registry.register("objects", "IngressSourcePreserves by phase", self.objects.clone());
        registry.register(
            "services_without_ingress_endpoint",
            "Preserved Services without a ready endpoint on an ingress node",
            self.services_without_ingress_endpoint.clone(),
        );
        registry.register(
            "events_dropped",
            "Events dropped because the queue was full",
            self.events_dropped.clone(),
        );
    }

    pub(crate) fn action(&self, action: &Action, outcome: Outcome) {
        self.actions.get_or_create(&ByAction { action: action.kind(), outcome }).inc();
    }

    /// Counts the handover that this action ends, if it ends one. `age` is the time since the
    /// handover started.
    pub(crate) fn handover(&self, action: &Action, age: Option<Duration>) {
        let Action::ShapeNode { step, .. } = action else { return };
        let (direction, outcome) = match step {
            NodeStep::HandedOver => (Direction::Over, Ending::Done),
            NodeStep::RollBack | NodeStep::GiveUpImages => (Direction::Over, Ending::Failed),
            NodeStep::HandedBack => (Direction::Back, Ending::Done),
            NodeStep::PullImages
            | NodeStep::HandOver
            | NodeStep::HandBack
            | NodeStep::Suspect
            | NodeStep::StopAgent
            | NodeStep::StartAgent
            | NodeStep::Release => return,
        };
        self.handovers.get_or_create(&ByHandover { direction, outcome }).inc();
        if let (Ending::Done, Some(age)) = (outcome, age) {
            self.handover_duration.get_or_create(&ByDirection { direction }).observe(age.as_secs_f64());
        }
    }

    pub(crate) fn planned(&self, duration: Duration) {
        self.plan_duration.observe(duration.as_secs_f64());
    }

    pub(crate) fn call(&self, call: &Call) {
        self.calls.get_or_create(call).inc();
    }

    pub(crate) fn leads(&self, leads: bool) {
        self.leader.set(leads.into());
    }

    pub(crate) fn event_dropped(&self) {
        self.events_dropped.inc();
    }
}
