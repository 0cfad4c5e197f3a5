//! The acknowledgement of this node: the status of its IngressSourceNode, written on change only.
//! The operator acts on it, so the report claims nothing before it has happened.

mod own_object;
mod repairs;

use std::sync::Arc;
use std::time::Duration;

use isp_api::IngressSourceNode;
use isp_api::conditions::record;
use isp_api::names::{AGENT_FIELD_MANAGER, condition};
use isp_api::node::{AcknowledgedView, IngressSourceNodeStatus};
use isp_api::view::{ObjectView, View};
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

pub(super) use self::own_object::{ObservedStatus, follow};
use self::repairs::{RepairPacing, WriteBackoff};
use super::metrics::NodeMetrics;
use super::progress::{Acknowledgement, Progress, ReadyCondition};
use super::view::{EpochView, ViewStore};

#[cfg(test)]
mod tests;

/// The report writes changes that arrive within this time together.
const SETTLE: Duration = Duration::from_millis(100);
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest pause between two looks at the state.
const IDLE: Duration = Duration::from_secs(10);

/// How long a new agent lets the report of the agent before it stand while it takes over.
const TAKES_OVER: Duration = Duration::from_secs(15);

/// Identifies the reporting agent.
pub(crate) struct ReportingAgent {
    pub(crate) node: String,
    pub(crate) pool: String,
    pub(crate) revision: String,
}

/// Writes the status of this node.
pub(super) struct Reporter<P> {
    pub(super) client: Client,
    pub(super) agent: ReportingAgent,
    pub(super) view: Arc<ViewStore>,
    pub(super) progress: P,
    /// The status as the API server has it.
    pub(super) observed: watch::Receiver<ObservedStatus>,
    pub(super) metrics: Arc<NodeMetrics>,
    pub(super) pulse: Pulse,
}

/// The report without the times at which its facts became true.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NodeFacts {
    /// Without conditions and without the time of the last sync.
    pub(crate) status: IngressSourceNodeStatus,
    pub(crate) ready: ReadyCondition,
    /// UID, generation and view of each object that the node has taken over.
    applied: Vec<(String, i64, View)>,
}

/// A report, and the facts that it states.
#[derive(Debug, Clone)]
struct Report {
    facts: NodeFacts,
    status: IngressSourceNodeStatus,
}

impl<P: Progress> Reporter<P> {
    /// Reports changes, and rewrites a report that somebody changed or deleted. Does not return.
    pub(super) async fn run(mut self) {
        let began = Instant::now();
        let mut views = self.view.subscribe();
        let mut written: Option<Report> = None;
        let (mut repairs, mut backoff) = (RepairPacing::default(), WriteBackoff::default());
        loop {
            self.pulse.beat();
            let mut wait = IDLE;
            if let Some(current) = self.view.current() {
                let acknowledgement = self.progress.acknowledge(&current).await;
                let facts = facts(&self.agent, &current, &acknowledgement);
                wait = wait.min(acknowledgement.ask_again().unwrap_or(IDLE));

                let before = written.as_ref();
                let is_new = before.is_none_or(|before| before.facts != facts);
                let differs = before
                    .is_some_and(|before| self.observed.borrow_and_update().differs_from(&before.status));
                let repair = repairs.due(differs, Instant::now());
                let due = match before {
                    None if acknowledgement.inherits() && !acknowledgement.applied() => {
                        held_back(&self.observed.borrow(), began.elapsed())
                    }
                    _ if is_new => Duration::ZERO,
                    _ => repair.unwrap_or(IDLE),
                };
                let due = due.max(backoff.wait(Instant::now()));
                if due.is_zero() {
                    let report = report(facts, before, Timestamp::now());
                    let result = self.try_write(&report.status).await;
                    if result.is_ok() {
                        written = Some(report);
                        if repair.is_some() {
                            repairs.done(Instant::now());
                            self.metrics.report_repaired();
                        }
                    }
                    backoff.record(result, Instant::now());
                }
                wait = wait.min(due.max(backoff.wait(Instant::now())).max(SETTLE));
            }
            tokio::select! {
                _ = views.changed() => {}
                () = self.progress.changed() => {}
                Ok(()) = self.observed.changed() => {}
                () = tokio::time::sleep(wait) => {}
            }
            tokio::time::sleep(SETTLE).await;
        }
    }

    async fn try_write(&self, status: &IngressSourceNodeStatus) -> Result<(), String> {
        match timeout(WRITE_TIMEOUT, self.write(status)).await {
            Ok(result) => result.map_err(|error| plain(&error)),
            Err(_) => Err("the API server does not answer".to_owned()),
        }
    }

    async fn write(&self, status: &IngressSourceNodeStatus) -> Result<(), kube::Error> {
        let nodes: Api<IngressSourceNode> = Api::all(self.client.clone());
        let name = &<P::Acknowledgement as Acknowledgement>::MODE.report_name(&self.agent.node);
        let apply = PatchParams::apply(AGENT_FIELD_MANAGER).force();
        let object = json!({
            "apiVersion": IngressSourceNode::api_version(&()),
            "kind": IngressSourceNode::kind(&()),
            "metadata": {"name": name},
            "status": status,
        });
        debug!("writing the status of this node");
        match nodes.patch_status(name, &apply, &Patch::Apply(&object)).await {
            Err(kube::Error::Api(error)) if error.code == 404 => {
                let bare = json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": object["metadata"]});
                nodes.patch(name, &apply, &Patch::Apply(&bare)).await?;
                nodes.patch_status(name, &apply, &Patch::Apply(&object)).await.map(drop)
            }
            result => result.map(drop),
        }
    }
}

/// How much longer the first report waits while the agent takes over the rules of the agent before.
/// What that one has acknowledged is still true. If it were taken back until the first sync, the
/// operator would show the Services of a single ingress node on every node for a while.
fn held_back(observed: &ObservedStatus, since_start: Duration) -> Duration {
    if observed.may_acknowledge() { TAKES_OVER.saturating_sub(since_start) } else { Duration::ZERO }
}

/// Collects the facts that the report may claim. Pure.
pub(crate) fn facts<A: Acknowledgement>(
    agent: &ReportingAgent,
    current: &EpochView,
    acknowledgement: &A,
) -> NodeFacts {
    let objects = &current.view.objects;
    let acknowledged = |object: &ObjectView| {
        let mut view = AcknowledgedView {
            object: object.object.clone(),
            uid: object.uid.clone(),
            generation: object.generation,
            view: object.view,
            received: false,
            services: Vec::new(),
            programmed: acknowledgement.programmed().map(|programmed| programmed && object.doubt.is_none()),
        };
        if object.doubt.is_none() {
            acknowledgement.complete_view(object, &mut view);
        }
        view
    };
    let mut status = IngressSourceNodeStatus {
        pool: agent.pool.clone(),
        revision: agent.revision.clone(),
        mode: A::MODE,
        views: objects.iter().map(acknowledged).collect(),
        active: false,
        served: None,
        last_sync: None,
        conditions: Vec::new(),
    };
    acknowledgement.complete_status(&mut status);
    let in_doubt =
        |object: &ObjectView| object.doubt.as_ref().map(|doubt| format!("{}: {doubt}", object.object));
    let doubts: Vec<String> = objects.iter().filter_map(in_doubt).collect();
    let ready = if doubts.is_empty() {
        acknowledgement.ready()
    } else {
        ReadyCondition { ready: false, reason: "Doubt", message: doubts.join("; ") }
    };
    let applied = objects.iter().filter(|object| acknowledgement.applied() && object.doubt.is_none());
    let applied = applied.map(|object| (object.uid.clone(), object.generation, object.view)).collect();
    NodeFacts { status, ready, applied }
}

/// Adds the times at which the facts became true. Pure.
fn report(facts: NodeFacts, before: Option<&Report>, now: Timestamp) -> Report {
    let mut status = facts.status.clone();
    status.conditions = before.map(|before| before.status.conditions.clone()).unwrap_or_default();
    record(
        &mut status.conditions,
        Condition {
            type_: condition::READY.to_owned(),
            status: if facts.ready.ready { "True" } else { "False" }.to_owned(),
            reason: facts.ready.reason.to_owned(),
            message: facts.ready.message.clone(),
            last_transition_time: Time(now),
            observed_generation: None,
        },
    );
    let applied_before = before.map(|before| &before.facts.applied);
    status.last_sync = if facts.ready.ready && applied_before != Some(&facts.applied) {
        Some(Time(now))
    } else {
        before.and_then(|before| before.status.last_sync.clone())
    };
    Report { facts, status }
}
