//! Gauges of the cluster's state, recomputed whenever a plan is due.

use isp_api::preserve::{Phase, ServiceState};
use isp_plan::Cluster;
use isp_plan::cluster::Node;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};

use super::Metrics;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
enum NodeState {
    /// Served by the cluster's kube-proxy.
    KubeProxy,
    GoingOver,
    Agent,
    GoingBack,
    /// Back on the cluster's kube-proxy because the agent missed its deadline.
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByState {
    state: NodeState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
enum ObjectPhase {
    /// No status yet.
    New,
    Pending,
    Progressing,
    Ready,
    Degraded,
    Conflict,
    Terminating,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByPhase {
    phase: ObjectPhase,
}

fn state(node: &Node) -> NodeState {
    match (&node.pool, &node.handover, &node.failure) {
        (Some(_), Some(_), _) => NodeState::GoingOver,
        (Some(_), None, _) => NodeState::Agent,
        (None, Some(_), _) => NodeState::GoingBack,
        (None, None, Some(_)) => NodeState::Failed,
        (None, None, None) => NodeState::KubeProxy,
    }
}

fn phase(phase: Option<Phase>) -> ObjectPhase {
    match phase {
        None => ObjectPhase::New,
        Some(Phase::Pending) => ObjectPhase::Pending,
        Some(Phase::Progressing) => ObjectPhase::Progressing,
        Some(Phase::Ready) => ObjectPhase::Ready,
        Some(Phase::Degraded) => ObjectPhase::Degraded,
        Some(Phase::Conflict) => ObjectPhase::Conflict,
        Some(Phase::Terminating) => ObjectPhase::Terminating,
    }
}

impl Metrics {
    pub(crate) fn cluster(&self, cluster: &Cluster) {
        use NodeState::{Agent, Failed, GoingBack, GoingOver, KubeProxy};
        use ObjectPhase::{Conflict, Degraded, New, Pending, Progressing, Ready, Terminating};
        let states = [KubeProxy, GoingOver, Agent, GoingBack, Failed];
        for state_of in states {
            let count = cluster.nodes.values().filter(|node| state(node) == state_of).count();
            self.nodes.get_or_create(&ByState { state: state_of }).set(number(count));
        }
        for phase_of in [New, Pending, Progressing, Ready, Degraded, Conflict, Terminating] {
            let phases = cluster.objects.values().map(|object| object.status.as_ref()?.phase);
            let count = phases.filter(|told| phase(*told) == phase_of).count();
            self.objects.get_or_create(&ByPhase { phase: phase_of }).set(number(count));
        }
        let services = cluster.objects.values().filter_map(|object| object.status.as_ref());
        let without = services
            .flat_map(|status| &status.services)
            .filter(|service| service.ingress_endpoints == 0 && service.state != ServiceState::Missing);
        self.services_without_ingress_endpoint.set(number(without.count()));
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
