//! How far kube-proxy and the kernel have come with the node's view. Fills the status fields of
//! mode Filter: `active`, and `received` of each view.

mod programmed;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use isp_api::node::{AcknowledgedView, AgentMode, IngressSourceNodeStatus};
use isp_api::view::ObjectView;
use tokio::sync::watch;

use self::programmed::RulesFollower;
use super::connections::ClientConnections;
use super::readers::KubeProxySync;
use crate::node::progress::{Acknowledgement, Progress, ReadyCondition};
use crate::node::view::EpochView;

#[cfg(test)]
mod tests;

/// How often to look at kube-proxy's metrics while the rules have not followed.
const METRICS_INTERVAL: Duration = Duration::from_secs(1);

/// Follows the reads and the rules of kube-proxy.
pub(crate) struct FilterProgress {
    connections: Arc<ClientConnections>,
    changes: watch::Receiver<u64>,
    rules: RulesFollower,
}

impl FilterProgress {
    pub(crate) fn new(connections: Arc<ClientConnections>, kube_proxy_metrics: SocketAddr) -> Self {
        let changes = connections.changes();
        Self { connections, changes, rules: RulesFollower::new(kube_proxy_metrics) }
    }
}

impl Progress for FilterProgress {
    type Acknowledgement = FilterAcknowledgement;

    async fn changed(&mut self) {
        // It cannot fail: `connections` holds the sender.
        let _ = self.changes.changed().await;
    }

    async fn acknowledge(&mut self, current: &EpochView) -> FilterAcknowledgement {
        let kube_proxy = self.connections.kube_proxy(current.epoch);
        let programmed = self.rules.follow(current.epoch, kube_proxy.synced_at).await;
        FilterAcknowledgement { kube_proxy, programmed }
    }
}

/// How far kube-proxy and the kernel have come with the view of one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilterAcknowledgement {
    kube_proxy: KubeProxySync,
    /// `None` if kube-proxy's metrics do not tell.
    programmed: Option<bool>,
}

impl Acknowledgement for FilterAcknowledgement {
    const MODE: AgentMode = AgentMode::Filter;

    fn applied(&self) -> bool {
        self.kube_proxy.synced_at.is_some()
    }

    /// Another kube-proxy may have written rules meanwhile.
    fn inherits(&self) -> bool {
        false
    }

    fn programmed(&self) -> Option<bool> {
        self.programmed
    }

    fn ready(&self) -> ReadyCondition {
        let (ready, reason, message) = match (self.kube_proxy.open_watches > 0, self.applied()) {
            (false, _) => (false, "KubeProxyNotConnected", "kube-proxy is not connected to the agent"),
            (true, false) => (false, "NotRelisted", "kube-proxy has not read the current view yet"),
            (true, true) => (true, "Current", "kube-proxy works with the current view"),
        };
        ReadyCondition { ready, reason, message: message.to_owned() }
    }

    /// A kube-proxy that has just started, or is busy, does not tell yet whether it has written its
    /// rules. So the report asks again until it does.
    fn ask_again(&self) -> Option<Duration> {
        (self.applied() && self.programmed != Some(true)).then_some(METRICS_INTERVAL)
    }

    fn complete_view(&self, _: &ObjectView, view: &mut AcknowledgedView) {
        view.received = self.applied();
    }

    fn complete_status(&self, status: &mut IngressSourceNodeStatus) {
        status.active = self.kube_proxy.open_watches > 0;
    }
}

#[cfg(test)]
impl FilterAcknowledgement {
    /// A kube-proxy that has read the view.
    pub(crate) fn synced(open_watches: u32, programmed: Option<bool>) -> Self {
        let synced_at = Some(std::time::SystemTime::UNIX_EPOCH);
        Self { kube_proxy: KubeProxySync { synced_at, open_watches }, programmed }
    }

    /// A kube-proxy that has not.
    pub(crate) fn not_synced(open_watches: u32, programmed: Option<bool>) -> Self {
        Self { kube_proxy: KubeProxySync { synced_at: None, open_watches }, programmed }
    }
}
