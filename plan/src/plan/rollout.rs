//! Step 2: which nodes are handed over to the agent, to another revision of it, or back, and when.
//!
//! | node has | should have | result |
//! |---|---|---|
//! | pool P, revision R, handover in progress | P, R | completes when the agent is ready and has acknowledged; after the deadline it is rolled back or left waiting, by `onFailure` |
//! | pool P, revision R | P, R | done, if the agent is ready |
//! | pool P, revision Q | P, R | candidate for R |
//! | pool O | P | candidate for P |
//! | nothing | P | candidate, unless the same revision has failed there |
//! | pool P | nothing | candidate for handing back |
//! | nothing, hand-back in progress | | completes when the cluster's kube-proxy is ready there |
//!
//! A candidate first pulls the images of the revision while its current kube-proxy keeps serving,
//! and is handed over once they are on the node. A pool starts a wave only when none of its nodes
//! is in transition, in either direction. `rollout.maxUnavailable` limits the size of a wave.
//!
//! A node is suspect if the cluster's own kube-proxy was seen running beside the agent: it left
//! rules that the agent's kube-proxy does not know about and would not resync for an hour. Once the
//! other kube-proxy has ended, the agent is restarted, which rewrites all rules.

mod mode;
mod node;
mod pods;
mod wave;

use std::collections::BTreeSet;
use std::sync::Arc;

use isp_api::node::AgentMode;
use isp_api::preserve::{Mode, OnFailure};
use isp_api::view::View;

use self::mode::agent_mode;
pub(super) use self::mode::{Origin, Source, needs_agent, needs_pool, remembered, whose};
use self::node::NodeFacts;
pub(super) use self::pods::Pods;
use self::wave::{Wave, Waves, as_it_is, hand_back, new_handover, shape_node};
use super::Plan;
use super::beside::{self, BesideAgents};
use super::pools::{Pools, settings_of};
use super::snapshot::{Object, Snapshot};
use crate::action::{Action, NodeShape, NodeStep};
use crate::cluster::{Acknowledgements, Key, Node};
use crate::record::{Failure, Handover};
use crate::waits::Wait;

/// How long an agent may be unready before that counts as a failure, in seconds.
const UNREADY: u32 = 30;
/// How long leftover operator fields on a node may delay finalizer removal, in seconds.
const LEFTOVERS: u32 = 60;

/// The rollout state of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// No agent is needed.
    NotNeeded,
    /// An agent is needed, but no pool matches.
    WithoutPool,
    /// Waits for its turn.
    Waiting,
    /// Waits, and the node is not ready.
    Unreachable,
    /// The agent's images are being pulled.
    Pulling,
    /// Handover to the agent is in progress.
    GoingOver,
    /// Missed the deadline; not rolled back.
    Late(String),
    /// Failed: rolled back, or its images could not be pulled.
    Failed(String),
    /// Runs the current revision of its agent.
    Done,
    /// Runs a ready agent of another revision and waits for its turn.
    Outdated,
    /// Handed over, but the agent is not ready.
    NotReady {
        reason: String,
        /// Whether the agent has been unready for longer than the limit.
        lasts: bool,
    },
    /// The cluster's own kube-proxy runs, or ran, beside the agent.
    Suspect,
    /// Hand-back to the cluster's kube-proxy is in progress.
    GoingBack,
}

pub(super) struct Rollout<'a> {
    pub(super) states: Vec<State>,
    /// For each node that needs an agent, whether the cluster's own kube-proxy also runs there. It
    /// writes rules for unfiltered Services.
    pub(super) strays: Vec<bool>,
    /// For each node, whether it is handed over and its agent is ready, of any revision.
    working: Vec<bool>,
    /// The agents of mode Beside.
    pub(super) beside: BesideAgents<'a>,
    /// Pools in which no wave starts, because a node is late or has failed.
    held: BTreeSet<&'a str>,
    on_the_way_back: bool,
}

impl<'a> Rollout<'a> {
    pub(super) fn plan(snapshot: &Snapshot<'a>, pools: &Pools<'a>, plan: &mut Plan) -> Self {
        let pods = Pods::new(snapshot);
        let mut this = Self {
            states: Vec::new(),
            strays: Vec::new(),
            working: Vec::new(),
            beside: BesideAgents::new(snapshot, pools, &pods, plan),
            held: BTreeSet::new(),
            on_the_way_back: false,
        };
        let mut waves = Waves::new();
        for (place, (name, node)) in snapshot.nodes.iter().copied().enumerate() {
            let assigned = pools.assigned[place];
            let wanted = assigned.filter(|pool| pools.by_name.get(pool).is_none_or(|pool| !pool.gives_up()));
            let facts = NodeFacts { snapshot, pools, pods: &pods, place, name, node };
            let state = match (node.pool.as_deref(), wanted) {
                (Some(has), Some(wanted)) if has == wanted => this.member(&facts, wanted, &mut waves, plan),
                (Some(_), Some(wanted)) => this.candidate(&facts, wanted, &mut waves, plan),
                (None, Some(wanted)) if node.handover.is_none() => {
                    this.candidate(&facts, wanted, &mut waves, plan)
                }
                (Some(has), None) => this.going_back(&facts, has, &mut waves, plan),
                (None, _) => this.coming_back(&facts, wanted, &mut waves, plan),
            };
            this.states.push(state);
            this.strays.push(wanted.is_some_and(|pool| facts.has_stray(pool)));
            this.working.push(wanted.is_some_and(|pool| facts.works(pool)));
        }
        wave::remember(snapshot, pools);
        for (pool, wave) in &waves {
            wave.begin(snapshot, pools, pool, this.held.contains(pool), plan);
        }
        this.forget(snapshot, &pods, plan);
        this.on_the_way_back |= this.beside.forget(snapshot, plan);
        this
    }

    /// A node that carries the label of its pool.
    fn member(
        &mut self,
        facts: &NodeFacts<'_, 'a>,
        pool: &'a str,
        waves: &mut Waves<'a>,
        plan: &mut Plan,
    ) -> State {
        match &facts.node.handover {
            Some(handover) if handover.restart => {
                restarting(facts, pool, waves.entry(pool).or_default(), plan)
            }
            Some(handover) => self.going_over(facts, pool, handover, waves, plan),
            None if facts.has_stray(pool) => {
                let handover = Some(Handover { restart: true, ..facts.handover(pool) });
                plan.actions.push(facts.shape(NodeShape { handover, ..facts.as_it_is() }, NodeStep::Suspect));
                State::Suspect
            }
            // Without a known target revision there is nothing to compare with: keep it.
            None if facts.revision(pool).is_none_or(|revision| facts.has_revision(revision)) => {
                has_agent(facts, pool, State::Done, plan)
            }
            None => match self.candidate(facts, pool, waves, plan) {
                State::Waiting | State::Pulling => has_agent(facts, pool, State::Outdated, plan),
                other => other,
            },
        }
    }

    /// A node being handed over to the revision in its label.
    fn going_over(
        &mut self,
        facts: &NodeFacts<'_, 'a>,
        pool: &'a str,
        handover: &Handover,
        waves: &mut Waves<'a>,
        plan: &mut Plan,
    ) -> State {
        let wave = waves.entry(pool).or_default();
        let failed = facts.failure(pool).map(|failure| failure.reason.clone());
        let ending = |failed: &Option<String>, other: State| failed.clone().map_or(other, State::Failed);
        if facts.is_complete(pool) {
            wave.on_the_way += 1;
            let shape = NodeShape { handover: None, images: None, ..facts.as_it_is() };
            plan.actions.push(facts.shape(shape, NodeStep::HandedOver));
            return ending(&failed, State::GoingOver);
        }
        let settings = settings_of(facts.snapshot, pool);
        let deadline = facts.over_by(settings.progress_deadline_seconds);
        if facts.snapshot.now < deadline {
            wave.on_the_way += 1;
            plan.wake_at(deadline);
            return ending(&failed, State::GoingOver);
        }
        // Late with an outdated revision: try the current one.
        let outdated = facts.revision(pool).is_some_and(|revision| !facts.has_revision(revision));
        if outdated && failed.is_none() {
            return self.candidate(facts, pool, waves, plan);
        }
        // This was the rollback from a failed revision. There is nothing else to roll back to.
        if let Some(failed) = failed {
            self.held.insert(pool);
            return State::Failed(failed);
        }
        let back = handover.from.clone().filter(|from| facts.pods.has_daemon_set(facts.snapshot, pool, from));
        let back = NodeShape {
            pool: back.as_ref().map(|_| pool.to_owned()),
            revision: back,
            handover: Some(facts.handover(pool)),
            ..NodeShape::default()
        };
        let revision = facts.node.revision.clone().unwrap_or_default();
        let failure = Failure { pool: pool.to_owned(), revision, reason: facts.trouble(pool) };
        self.is_late(facts, pool, failure, (back, NodeStep::RollBack), plan)
    }

    /// Handles a node that missed its deadline: leaves it waiting or applies this shape. No further
    /// wave starts in its pool.
    fn is_late(
        &mut self,
        facts: &NodeFacts<'_, 'a>,
        pool: &'a str,
        failure: Failure,
        (back, step): (NodeShape, NodeStep),
        plan: &mut Plan,
    ) -> State {
        self.held.insert(pool);
        let reason = failure.reason.clone();
        match settings_of(facts.snapshot, pool).on_failure {
            OnFailure::Pause => State::Late(reason),
            OnFailure::RollBack => {
                let shape = NodeShape { failure: Some(failure), ..back };
                plan.actions.push(facts.shape(shape, step));
                State::Failed(reason)
            }
        }
    }

    /// A node that should run a different agent.
    fn candidate(
        &mut self,
        facts: &NodeFacts<'_, 'a>,
        pool: &'a str,
        waves: &mut Waves<'a>,
        plan: &mut Plan,
    ) -> State {
        if let Some(failure) = facts.failure(pool) {
            // A node that is down anyway does not block the others.
            if facts.node.ready {
                self.held.insert(pool);
            }
            return State::Failed(failure.reason.clone());
        }
        if !facts.node.ready {
            return State::Unreachable;
        }
        let wave = waves.entry(pool).or_default();
        let Some(revision) = facts.revision(pool).filter(|revision| facts.pulls(revision)) else {
            wave.candidates.push(facts.place);
            return State::Waiting;
        };
        wave.pulling += 1;
        if facts.pods.images(facts.name, revision).is_some_and(|pod| pod.ready) {
            wave.prepared.push(facts.place);
            return State::Pulling;
        }
        let settings = settings_of(facts.snapshot, pool);
        let wait = Wait::Images { node: facts.name.to_owned(), revision: revision.to_owned() };
        let deadline = facts.snapshot.clock.end(wait, settings.progress_deadline_seconds);
        if facts.snapshot.now < deadline {
            plan.wake_at(deadline);
            return State::Pulling;
        }
        let reason = facts.image_trouble(revision);
        let failure = Failure { pool: pool.to_owned(), revision: revision.to_owned(), reason };
        let back = NodeShape { images: None, ..facts.as_it_is() };
        self.is_late(facts, pool, failure, (back, NodeStep::GiveUpImages), plan)
    }

    /// A node whose pool label should be removed.
    fn going_back(
        &mut self,
        facts: &NodeFacts<'_, 'a>,
        pool: &'a str,
        waves: &mut Waves<'a>,
        plan: &mut Plan,
    ) -> State {
        if facts.was_sent_back() {
            // The write failed, or something (for example its kubelet) restored the label. Waits
            // only until the first deadline, not again.
            let settings = settings_of(facts.snapshot, pool);
            let seconds = settings.progress_deadline_seconds;
            let in_time = facts.snapshot.now < facts.back_by(seconds) && !facts.keeps_coming(seconds);
            self.on_the_way_back |= in_time;
            waves.entry(pool).or_default().on_the_way += usize::from(in_time);
            plan.actions.push(hand_back(facts.snapshot, facts.place, pool));
        } else {
            let settings = settings_of(facts.snapshot, pool);
            self.on_the_way_back |= !facts.keeps_coming(settings.progress_deadline_seconds);
            waves.entry(pool).or_default().back.push(facts.place);
        }
        State::GoingBack
    }

    /// A node without a pool label: hand-back in progress, completed, or never handed over.
    fn coming_back(
        &mut self,
        facts: &NodeFacts<'_, 'a>,
        wanted: Option<&'a str>,
        waves: &mut Waves<'a>,
        plan: &mut Plan,
    ) -> State {
        let node = facts.node;
        if let Some(handover) = &node.handover {
            let settings = settings_of(facts.snapshot, &handover.pool);
            let deadline = facts.back_by(settings.progress_deadline_seconds);
            // Bounds the wait, even if something keeps rewriting the node.
            self.on_the_way_back |=
                facts.snapshot.now < deadline && !facts.keeps_coming(settings.progress_deadline_seconds);
            if let Some(pool) = wanted.filter(|pool| *pool == handover.pool) {
                waves.entry(pool).or_default().on_the_way += 1;
            }
            // Complete after the deadline, too: the label is gone, so kube-proxy starts when it
            // can.
            if facts.is_back() || facts.snapshot.now >= deadline {
                let shape = NodeShape { failure: node.failure.clone(), ..NodeShape::default() };
                plan.actions.push(facts.shape(shape, NodeStep::HandedBack));
            } else {
                plan.wake_at(deadline);
            }
            return State::GoingBack;
        }
        if facts.snapshot.needs_agent(facts.place) {
            return State::WithoutPool;
        }
        if node.failure.is_some() || node.images.is_some() || node.revision.is_some() {
            facts.send_back();
            self.on_the_way_back |= !facts.keeps_coming(LEFTOVERS);
            plan.actions.push(facts.shape(NodeShape::default(), NodeStep::Release));
        }
        State::NotNeeded
    }

    /// Deletes the reports of agents that no longer exist.
    fn forget(&mut self, snapshot: &Snapshot<'a>, pods: &Pods<'_>, plan: &mut Plan) {
        for (name, report) in &snapshot.cluster.reports {
            if beside::is_report(name, report) {
                continue;
            }
            let node = snapshot.cluster.nodes.get(name);
            let stopped = |node: &Node| {
                node.revision.is_none() && node.handover.as_ref().is_some_and(|handover| handover.restart)
            };
            if node.is_some_and(|node| node.pool.is_some() && !stopped(node)) {
                continue;
            }
            // A terminating agent would recreate its report. On an unreachable node it may never
            // terminate.
            let ending = node.is_some() && pods.agent(name, None).is_some();
            let back = node.is_some_and(|node| node.pool.is_none() && (node.ready || !ending));
            self.on_the_way_back |= back;
            if !ending {
                plan.actions.push(Action::Forget { report: name.clone(), identity: report.identity.clone() });
            }
        }
    }

    /// Whether a node is being handed back or still carries operator fields.
    pub(super) fn on_the_way_back(&self) -> bool {
        self.on_the_way_back
    }

    /// Whether the node's agent works and has acknowledged the object's generation.
    pub(super) fn has_acknowledged(
        &self,
        snapshot: &Snapshot<'_>,
        object: &Object<'_>,
        place: usize,
    ) -> bool {
        let report = snapshot.cluster.report(snapshot.nodes[place].0, agent_mode(object.mode));
        self.works(object, place)
            && report.is_some_and(|report| node::acknowledges(&report.acknowledged, object, place))
    }

    /// Whether the agent of the object's mode works on the node.
    fn works(&self, object: &Object<'_>, place: usize) -> bool {
        match object.mode {
            Mode::Filter => self.working[place],
            Mode::Beside => self.beside.works[place],
        }
    }

    /// The state of a node for the object.
    pub(super) fn state(&self, object: &Object<'_>, place: usize) -> &State {
        match object.mode {
            Mode::Filter => &self.states[place],
            Mode::Beside => &self.beside.states[place],
        }
    }

    /// The number of nodes that need an agent for the object, and how many of them have a working
    /// agent that has acknowledged the object's generation.
    pub(super) fn acknowledged(&self, snapshot: &Snapshot<'_>, object: &Object<'_>) -> (usize, usize) {
        self.applying(snapshot, object, node::acknowledges)
    }

    /// Whether the agents of mode Beside serve the Service on every node that needs one.
    pub(super) fn serves_everywhere(
        &self,
        snapshot: &Snapshot<'_>,
        object: &Object<'_>,
        service: &Key,
    ) -> bool {
        let serves = |said: &Acknowledgements, object: &Object<'_>, place: usize| {
            node::acknowledges(said, object, place)
                && said.get(object.uid).is_some_and(|said| said.services.contains(service))
        };
        let (nodes, serving) = self.applying(snapshot, object, serves);
        nodes == serving
    }

    /// The number of nodes that need an agent for the object, and how many of them have a working
    /// agent of which this holds.
    fn applying(
        &self,
        snapshot: &Snapshot<'_>,
        object: &Object<'_>,
        holds: impl Fn(&Acknowledgements, &Object<'_>, usize) -> bool,
    ) -> (usize, usize) {
        let (mut elsewhere, mut ready) = (0, 0);
        // Nodes with equal reports share one allocation, so consecutive lookups usually hit.
        let mut last: Option<(*const _, View, bool)> = None;
        for (place, (name, _)) in snapshot.nodes.iter().enumerate() {
            if !object.needs_agent(place) {
                continue;
            }
            elsewhere += 1;
            if !self.works(object, place) {
                continue;
            }
            let Some(report) = snapshot.cluster.report(name, agent_mode(object.mode)) else { continue };
            let (shared, view) = (Arc::as_ptr(&report.acknowledged), object.view(place));
            let acknowledged = match last {
                Some((known, of, answer)) if known == shared && of == view => answer,
                _ => holds(&report.acknowledged, object, place),
            };
            last = Some((shared, view, acknowledged));
            ready += usize::from(acknowledged);
        }
        (elsewhere, ready)
    }
}

/// The state of a node that was handed over: `ready` if its agent is ready.
fn has_agent(facts: &NodeFacts<'_, '_>, pool: &str, ready: State, plan: &mut Plan) -> State {
    let Some(reason) = facts.unready(pool) else { return ready };
    let failed = facts.snapshot.clock.end(Wait::NotReady { node: facts.name.to_owned() }, UNREADY);
    let lasts = facts.snapshot.now >= failed;
    if !lasts {
        plan.wake_at(failed);
    }
    State::NotReady { reason, lasts }
}

/// A node whose agent must be restarted.
fn restarting(facts: &NodeFacts<'_, '_>, pool: &str, wave: &mut Wave, plan: &mut Plan) -> State {
    let node = facts.node;
    if node.revision.is_some() {
        if !facts.has_stray(pool) {
            wave.restarts.push(facts.place);
        }
        return State::Suspect;
    }
    // On an unreachable node the agent may never terminate, so it does not block the wave.
    wave.on_the_way += usize::from(node.ready);
    let gone = facts.pods.agent(facts.name, None).is_none();
    let forgotten = facts.snapshot.cluster.report(facts.name, AgentMode::Filter).is_none();
    if gone && forgotten {
        // The previous revision, or the current one if the previous DaemonSet no longer exists.
        let former = node.handover.as_ref().and_then(|handover| handover.from.clone());
        let there = former.filter(|from| facts.pods.has_daemon_set(facts.snapshot, pool, from));
        let revision = there.or_else(|| facts.revision(pool).map(str::to_owned));
        let shape = NodeShape { revision, handover: Some(facts.handover(pool)), ..facts.as_it_is() };
        plan.actions.push(facts.shape(shape, NodeStep::StartAgent));
    }
    State::Suspect
}
