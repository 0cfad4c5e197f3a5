//! The acknowledgement: what this node sees, written to its IngressSourceNode, on change only. The operator takes its
//! steps by it, so an entry claims a thing only after it has happened.

mod own_object;

mod repairs;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use isp_api::IngressSourceNode;
use isp_api::conditions::record;
use isp_api::names::{AGENT_FIELD_MANAGER, condition};
use isp_api::node::{AcknowledgedView, IngressSourceNodeStatus};
use isp_api::preserve::Mode;
use isp_client::plain;
use isp_runtime::health::Pulse;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tracing::debug;

pub(crate) use self::own_object::{Observed, follow};
use self::repairs::{Backoff, Repairs};
use crate::filter::metrics::Metrics;
use crate::filter::readers::Reading;
use crate::node::view::{Current, State};

#[cfg(test)]
mod tests;

/// Changes that come together are written together.
const SETTLE: Duration = Duration::from_millis(100);
/// How often kube-proxy's metrics are looked at while the kernel has not followed.
const AGAIN: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest that it rests when nothing happens.
const REST: Duration = Duration::from_secs(10);

/// Writes the status of this node.
pub(crate) struct Reporter {
    pub(crate) client: Client,
    pub(crate) node: String,
    pub(crate) pool: String,
    pub(crate) revision: String,
    pub(crate) kube_proxy_metrics: SocketAddr,
    pub(crate) state: Arc<State>,
    /// The object as the API server has it.
    pub(crate) observed: watch::Receiver<Observed>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) pulse: Pulse,
}

/// What is true now, apart from the times at which it became so.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Facts {
    views: Vec<AcknowledgedView>,
    proxy_connected: bool,
    ready: bool,
    reason: &'static str,
    message: String,
}

impl Reporter {
    /// Follows the state, for ever. What was written and is no longer there is written again.
    pub(crate) async fn run(mut self) {
        let (mut views, mut readings) = (self.state.views(), self.state.readings());
        let mut written: Option<(Facts, IngressSourceNodeStatus)> = None;
        let mut kernel = crate::filter::progress::programmed::Follower::default();
        let (mut repairs, mut backoff) = (Repairs::default(), Backoff::default());
        loop {
            self.pulse.beat();
            let mut wait = REST;
            if let Some(current) = self.state.current() {
                let reading = self.state.reading(current.epoch);
                let had = reading.had_since.map(|since| (current.epoch, since));
                let followed = kernel.look(self.kube_proxy_metrics, had).await;
                let facts = facts(&current, &reading, followed);
                wait = wait.min(look_again(had.is_some(), followed).unwrap_or(REST));

                let news = written.as_ref().is_none_or(|(before, _)| *before != facts);
                let before = written.as_ref().map(|(_, status)| status);
                let differs =
                    before.is_some_and(|before| self.observed.borrow_and_update().differs_from(before));
                let repair = repairs.due(differs, Instant::now());
                let due = if news { Duration::ZERO } else { repair.unwrap_or(REST) };
                let due = due.max(backoff.wait(Instant::now()));
                if due.is_zero() {
                    let mut status = status(&self.pool, &facts, before, Timestamp::now());
                    status.revision.clone_from(&self.revision);
                    let result = self.try_write(&status).await;
                    if result.is_ok() {
                        written = Some((facts, status));
                        if repair.is_some() {
                            repairs.done(Instant::now());
                            self.metrics.repaired();
                        }
                    }
                    backoff.note(result, Instant::now());
                }
                wait = wait.min(due.max(backoff.wait(Instant::now())).max(SETTLE));
            }
            tokio::select! {
                _ = views.changed() => {}
                _ = readings.changed() => {}
                Ok(()) = self.observed.changed() => {}
                () = tokio::time::sleep(wait) => {}
            }
            tokio::time::sleep(SETTLE).await;
        }
    }

    async fn try_write(&self, status: &IngressSourceNodeStatus) -> Result<(), String> {
        match timeout(PATIENCE, self.write(status)).await {
            Ok(result) => result.map_err(|error| plain(&error)),
            Err(_) => Err("the API server does not answer".to_owned()),
        }
    }

    async fn write(&self, status: &IngressSourceNodeStatus) -> Result<(), kube::Error> {
        let nodes: Api<IngressSourceNode> = Api::all(self.client.clone());
        let mine = PatchParams::apply(AGENT_FIELD_MANAGER).force();
        let object = json!({
            "apiVersion": IngressSourceNode::api_version(&()),
            "kind": IngressSourceNode::kind(&()),
            "metadata": {"name": self.node},
            "status": status,
        });
        debug!("writing the status of this node");
        match nodes.patch_status(&self.node, &mine, &Patch::Apply(&object)).await {
            Err(kube::Error::Api(error)) if error.code == 404 => {
                let bare = json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": object["metadata"]});
                nodes.patch(&self.node, &mine, &Patch::Apply(&bare)).await?;
                nodes.patch_status(&self.node, &mine, &Patch::Apply(&object)).await.map(drop)
            }
            result => result.map(drop),
        }
    }
}

/// When to look at the kernel again: while it has not followed, and while that cannot be told, for a kube-proxy that has just
/// started or is busy does not tell yet.
fn look_again(has_read: bool, followed: Option<bool>) -> Option<Duration> {
    (has_read && followed != Some(true)).then_some(AGAIN)
}

/// What can be claimed. Pure.
fn facts(current: &Current, reading: &Reading, followed: Option<bool>) -> Facts {
    let relisted = reading.had_since.is_some();
    let connected = reading.watches > 0;
    let doubts: Vec<String> = current
        .view
        .objects
        .iter()
        .filter_map(|object| object.doubt.as_ref().map(|doubt| format!("{}: {doubt}", object.object)))
        .collect();
    let views = current.view.objects.iter().map(|object| AcknowledgedView {
        object: object.object.clone(),
        uid: object.uid.clone(),
        generation: object.generation,
        view: object.view,
        // What cannot be vouched for is not claimed.
        relisted: relisted && object.doubt.is_none(),
        programmed: followed.map(|followed| followed && object.doubt.is_none()),
    });
    let (ready, reason, message) = match (doubts.is_empty(), connected, relisted) {
        (false, ..) => (false, "Doubt", doubts.join("; ")),
        (true, false, _) => {
            (false, "KubeProxyNotConnected", "kube-proxy is not connected to the agent".to_owned())
        }
        (true, true, false) => {
            (false, "NotRelisted", "kube-proxy has not read the current view yet".to_owned())
        }
        (true, true, true) => (true, "Current", "kube-proxy works with the current view".to_owned()),
    };
    Facts { views: views.collect(), proxy_connected: connected, ready, reason, message }
}

/// The facts with the times at which they became so. Pure.
fn status(
    pool: &str,
    facts: &Facts,
    before: Option<&IngressSourceNodeStatus>,
    now: Timestamp,
) -> IngressSourceNodeStatus {
    let mut conditions = before.map(|status| status.conditions.clone()).unwrap_or_default();
    record(
        &mut conditions,
        Condition {
            type_: condition::READY.to_owned(),
            status: if facts.ready { "True" } else { "False" }.to_owned(),
            reason: facts.reason.to_owned(),
            message: facts.message.clone(),
            last_transition_time: Time(now),
            observed_generation: None,
        },
    );
    let relisted = |views: &[AcknowledgedView]| {
        views
            .iter()
            .filter(|view| view.relisted)
            .map(|view| (view.uid.clone(), view.generation, view.view))
            .collect::<Vec<_>>()
    };
    let seen_before = before.map(|status| relisted(&status.views));
    let last_sync = if facts.ready && seen_before.as_ref() != Some(&relisted(&facts.views)) {
        Some(Time(now))
    } else {
        before.and_then(|status| status.last_sync.clone())
    };
    IngressSourceNodeStatus {
        pool: pool.to_owned(),
        revision: String::new(),
        mode: Mode::Filter,
        views: facts.views.clone(),
        proxy_connected: facts.proxy_connected,
        last_sync,
        conditions,
    }
}
