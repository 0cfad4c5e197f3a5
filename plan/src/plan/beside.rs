//! The agents of mode Beside: one DaemonSet for all nodes and all objects. It displaces nothing, so
//! no node is handed over to it, and nothing is written to a node. The DaemonSet controller
//! replaces its pods at the pace of the oldest object's rollout.
//!
//! It exists from the moment that an object of this mode may begin until no Service depends on it
//! any more, which includes the Services of objects that have left the mode. Nothing of it is
//! retained: kube-proxies get a Service back before it is retained. Before it is deleted, its
//! agents must report that they serve nothing: an agent without Services removes its rules from the
//! kernel, and one that ends leaves them there.

use isp_api::names::{ACCOUNT_ANNOTATION, BESIDE_NAME};
use isp_api::node::AgentMode;
use isp_api::preserve::{MaxUnavailable, Rollout as Settings};
use k8s_openapi::api::apps::v1::DaemonSet as DaemonSetObject;
use serde_json::json;

use super::Plan;
use super::accounts;
use super::pools::{Pools, covers};
use super::rollout::{Pods, State};
use super::snapshot::{Object, Snapshot};
use crate::action::Action;
use crate::build::agents::beside_daemon_set;
use crate::cluster::{DaemonSet, Key, Node, Pod, Report};
use crate::observe::HOME;
use crate::placement::{admits, is_virtual};
use crate::waits::Wait;

/// How long an agent that has worked may be unready before that counts as a failure, in seconds.
const UNREADY: u32 = 30;
/// How long agents may take to report that they serve nothing, and orphaned Services to be given
/// back, in seconds.
const DRAIN: u32 = 60;

/// The agents, as they are and as they should be.
pub(super) struct BesideAgents<'a> {
    /// Whether an object needs them.
    pub(super) needed: bool,
    /// The state of each node.
    pub(super) states: Vec<State>,
    /// For each node, whether its agent is ready and active.
    pub(super) works: Vec<bool>,
    /// For each node, whether the agent has a pod there.
    pub(super) has_pod: Vec<bool>,
    /// Whether the agents' account is in place.
    pub(super) account: Result<(), accounts::Problem>,
    there: Option<(&'a Key, &'a DaemonSet)>,
}

/// The DaemonSet.
pub(super) fn key() -> Key {
    Key::new(HOME, BESIDE_NAME)
}

/// For each node, whether no agent can run there: it has no network of its own.
pub(super) fn unfit(nodes: &[(&str, &Node)]) -> Vec<bool> {
    let pod = beside_daemon_set(HOME, "", MaxUnavailable::Count(1)).spec.template.spec.unwrap_or_default();
    nodes.iter().map(|(name, node)| is_virtual(node) || !admits(&pod, name, node)).collect()
}

/// Whether an agent of mode Beside can run on a node.
pub fn can_have_agent(name: &str, node: &Node) -> bool {
    unfit(&[(name, node)]) == [false]
}

/// Whether an object or a Service needs the agents.
pub(super) fn is_needed(snapshot: &Snapshot<'_>) -> bool {
    let depends = |key: &&Key| snapshot.service(key).is_some_and(crate::cluster::Service::depends_on_beside);
    // Must be evaluated in every plan: a wait that is not asked about restarts.
    let orphaned =
        snapshot.orphans.iter().any(depends) && snapshot.now < snapshot.clock.end(Wait::OrphansBeside, DRAIN);
    orphaned || snapshot.objects.iter().any(Object::needs_beside)
}

/// Whether the first agents may be started.
pub(super) fn may_begin(snapshot: &Snapshot<'_>) -> bool {
    let begins = |object: &Object<'_>| {
        object.needs_beside() && (object.may_begin() || object.has_begun() || object.keeps_beside)
    };
    snapshot.objects.iter().any(begins)
}

/// The rollout settings: those of the oldest object that needs the agents.
fn settings(snapshot: &Snapshot<'_>) -> Settings {
    let lead = snapshot.objects.iter().find(|object| object.needs_beside());
    lead.map(|object| object.written.spec.rollout.clone()).unwrap_or_default()
}

impl<'a> BesideAgents<'a> {
    pub(super) fn new(snapshot: &Snapshot<'a>, pools: &Pools<'a>, pods: &Pods<'a>, plan: &mut Plan) -> Self {
        let there = snapshot.made.iter().copied().find(|(known, _)| **known == key());
        let needed = is_needed(snapshot);
        let mut this = Self {
            needed,
            states: Vec::new(),
            works: Vec::new(),
            has_pod: Vec::new(),
            account: pools.check_account(HOME),
            there,
        };
        for (place, (name, node)) in snapshot.nodes.iter().copied().enumerate() {
            let pod = pods.beside(name, &key());
            let report = snapshot.cluster.report(name, AgentMode::Beside);
            let ready = pod.is_some_and(|pod| pod.ready);
            this.works.push(ready && report.is_some_and(|report| report.active));
            this.has_pod.push(pod.is_some());
            let state = match () {
                () if !needed || snapshot.unfit[place] => State::NotNeeded,
                () if ready => State::Done,
                () => starting(snapshot, name, node, pod, report.is_some(), plan),
            };
            this.states.push(state);
        }
        this
    }

    /// Creates, updates and deletes the DaemonSet.
    pub(super) fn plan(&self, snapshot: &Snapshot<'a>, pools: &Pools<'a>, plan: &mut Plan) {
        match self.there {
            Some((key, set)) if !self.needed => {
                if self.is_drained(snapshot, plan) {
                    let (daemon_set, identity) = (key.clone(), set.identity.clone());
                    plan.actions.push(Action::DeletePool { daemon_set, identity });
                }
            }
            _ if !self.needed || self.account.is_err() || snapshot.settings.cleanup => {}
            None if !may_begin(snapshot) => {}
            there => {
                let wanted = wanted(snapshot, pools, there.map(|(_, set)| set));
                let is_current = there.is_some_and(|(_, set)| covers(&json!(set.object), &json!(wanted)));
                let waits = there.is_some() && settings(snapshot).paused;
                if !is_current && !waits {
                    plan.actions
                        .push(Action::ApplyPool { pool: String::new(), daemon_set: Box::new(wanted) });
                }
            }
        }
    }

    /// Whether no agent that answers serves a Service, or too much time has passed.
    fn is_drained(&self, snapshot: &Snapshot<'_>, plan: &mut Plan) -> bool {
        let serves = |place: usize| {
            let report = snapshot.cluster.report(snapshot.nodes[place].0, AgentMode::Beside);
            report.is_some_and(|report| report.served > 0)
        };
        if !(0..snapshot.nodes.len()).any(|place| self.works[place] && serves(place)) {
            return true;
        }
        let end = snapshot.clock.end(Wait::Drain, DRAIN);
        if snapshot.now < end {
            plan.wake_at(end);
        }
        snapshot.now >= end
    }

    /// Deletes the reports of agents that no longer exist. Returns whether one is left that delays
    /// the removal of finalizers.
    pub(super) fn forget(&self, snapshot: &Snapshot<'a>, plan: &mut Plan) -> bool {
        let mut left = false;
        for (name, report) in &snapshot.cluster.reports {
            let Some(node) = AgentMode::Beside.node_of(name).filter(|_| is_report(name, report)) else {
                continue;
            };
            let place = snapshot.nodes.binary_search_by_key(&node, |(name, _)| *name).ok();
            let exists = self.there.is_some() && place.is_some();
            if exists {
                continue;
            }
            // A terminating agent would recreate its report.
            let ending = place.is_some_and(|place| self.has_pod[place]);
            left |= place.is_some_and(|place| snapshot.nodes[place].1.ready || !ending);
            if !ending {
                let (report, identity) = (name.clone(), report.identity.clone());
                plan.actions.push(Action::Forget { report, identity });
            }
        }
        left
    }
}

/// Whether an agent of mode Beside writes this report.
pub(super) fn is_report(name: &str, report: &Report) -> bool {
    report.mode == AgentMode::Beside && AgentMode::Beside.node_of(name).is_some()
}

/// A node whose agent is not ready.
fn starting(
    snapshot: &Snapshot<'_>,
    name: &str,
    node: &Node,
    pod: Option<&Pod>,
    has_worked: bool,
    plan: &mut Plan,
) -> State {
    let limit = if has_worked { UNREADY } else { settings(snapshot).progress_deadline_seconds };
    let end = snapshot.clock.end(Wait::Beside { node: name.to_owned() }, limit);
    let lasts = snapshot.now >= end;
    if !lasts {
        plan.wake_at(end);
    }
    let reason = match pod {
        _ if !node.ready => "the node is not ready".to_owned(),
        None => "the agent has no pod yet".to_owned(),
        Some(pod) => pod.trouble.clone().unwrap_or_else(|| "the agent's pod is not ready".to_owned()),
    };
    match (has_worked, lasts) {
        (true, lasts) => State::NotReady { reason, lasts },
        (false, _) if !node.ready => State::Unreachable,
        (false, false) => State::GoingOver,
        (false, true) => State::Late(reason),
    }
}

/// The DaemonSet as it should be.
fn wanted(snapshot: &Snapshot<'_>, pools: &Pools<'_>, there: Option<&DaemonSet>) -> DaemonSetObject {
    let at_once = settings(snapshot).max_unavailable;
    let mut wanted = beside_daemon_set(HOME, &snapshot.settings.agent_image, at_once);
    // Without a usable account, keep the annotation: a change would restart the pods.
    let known = || {
        let pods = there?.object.spec.template.metadata.as_ref()?;
        pods.annotations.as_ref()?.get(ACCOUNT_ANNOTATION).cloned()
    };
    let account = pools.account(snapshot, HOME).map(str::to_owned).or_else(known).unwrap_or_default();
    let of_pods = wanted.spec.template.metadata.get_or_insert_default().annotations.get_or_insert_default();
    of_pods.insert(ACCOUNT_ANNOTATION.to_owned(), account);
    wanted
}
