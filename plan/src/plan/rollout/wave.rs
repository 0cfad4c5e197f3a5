//! The waves of a pool: which nodes are handed over, handed back or restarted next, and the writes
//! that do it.

use std::collections::BTreeMap;

use isp_api::node::AgentMode;
use isp_api::preserve::Rollout as Settings;

use super::super::Plan;
use super::super::pools::{Pools, may_begin, settings_of};
use super::super::snapshot::Snapshot;
use crate::action::{Action, NodeShape, NodeStep};
use crate::cluster::Node;
use crate::record::Handover;
use crate::waits::Wait;

/// How long orphaned Services may delay handing nodes back, in seconds.
const ORPHANS: u32 = 60;
/// How long a hand-back is remembered, in seconds.
const REMEMBERED: u32 = 600;

/// The nodes of one pool, as indices into the snapshot.
#[derive(Default)]
pub(super) struct Wave {
    /// Being handed over or back, or restarting.
    pub(super) on_the_way: usize,
    /// Pulling images.
    pub(super) pulling: usize,
    /// Ready to pull images.
    pub(super) candidates: Vec<usize>,
    /// Images pulled, ready to be handed over.
    pub(super) prepared: Vec<usize>,
    /// The agent must be restarted.
    pub(super) restarts: Vec<usize>,
    /// Ready to be handed back.
    pub(super) back: Vec<usize>,
}

pub(super) type Waves<'a> = BTreeMap<&'a str, Wave>;

impl Wave {
    /// Hands over the nodes whose images are present, and starts the pool's next wave.
    pub(super) fn begin(
        &self,
        snapshot: &Snapshot<'_>,
        pools: &Pools<'_>,
        pool: &str,
        held: bool,
        plan: &mut Plan,
    ) {
        let settings = settings_of(snapshot, pool);
        let found = pools.by_name.get(pool).filter(|found| found.begun && found.account.is_ok() && !held);
        let made = found.and_then(|found| found.made.as_ref().ok());
        let made = made.filter(|made| made.present && made.origin.is_ready());
        if let Some(made) = made {
            let over = self.prepared.iter().map(|place| hand_over(snapshot, *place, pool, &made.revision));
            plan.actions.extend(over);
        }
        // Must be evaluated in every plan: a wait that is not asked about restarts.
        let orphans = (!snapshot.orphans.is_empty() && !self.back.is_empty())
            .then(|| snapshot.clock.end(Wait::Orphans, ORPHANS));
        if self.on_the_way > 0 || is_going_back(snapshot, pool, settings.progress_deadline_seconds) {
            return;
        }
        if !self.back.is_empty() {
            // A Service that cannot be restored, or that is forged as ours, delays the hand-back
            // only briefly.
            return match orphans.filter(|end| snapshot.now < *end) {
                Some(end) => plan.wake_at(end),
                None => self.begin_back(snapshot, pool, &settings, plan),
            };
        }
        let (Some(made), Some(found)) = (made, found) else { return };
        if settings.paused || self.pulling > 0 {
            return;
        }
        let size = settings.max_unavailable.of(found.members.len());
        if !self.restarts.is_empty() {
            for place in self.restarts.iter().take(size) {
                plan.actions.push(stop_agent(snapshot, *place, pool));
            }
            return;
        }
        // A stale report of an earlier agent must not count for the new one.
        let unheard = |place: &&usize| {
            let report = snapshot.cluster.report(snapshot.nodes[**place].0, AgentMode::Filter);
            let moves = snapshot.nodes[**place].1.pool.is_some();
            report.is_none_or(|report| moves && (report.pool != pool || report.revision != made.revision))
        };
        let next = self.candidates.iter().filter(|place| may_begin(snapshot, **place)).filter(unheard);
        for place in next.take(if made.images_present { size } else { 0 }) {
            let node = snapshot.nodes[*place].1;
            let shape = NodeShape { images: Some(made.revision.clone()), failure: None, ..as_it_is(node) };
            plan.actions.push(shape_node(snapshot, *place, shape, NodeStep::PullImages));
        }
    }

    /// Starts the next wave of hand-backs.
    fn begin_back(&self, snapshot: &Snapshot<'_>, pool: &str, settings: &Settings, plan: &mut Plan) {
        let labelled = snapshot.nodes.iter().filter(|(_, node)| node.pool.as_deref() == Some(pool)).count();
        let mut next = self.back.clone();
        next.sort_by_key(|place| snapshot.clock.is_known(&memory(snapshot.nodes[*place].0)));
        for place in next.into_iter().take(settings.max_unavailable.of(labelled)) {
            let node = snapshot.nodes[place].0.to_owned();
            sent_back(snapshot, &node);
            snapshot.clock.end(Wait::Back { node }, settings.progress_deadline_seconds);
            plan.actions.push(hand_back(snapshot, place, pool));
        }
    }
}

fn memory(node: &str) -> Wait {
    Wait::SentBack { node: node.to_owned() }
}

/// Records that a node was sent back.
pub(super) fn sent_back(snapshot: &Snapshot<'_>, node: &str) {
    snapshot.clock.end(memory(node), REMEMBERED);
}

/// Whether a node was first sent back longer ago than this and is still, or again, in transition.
pub(super) fn keeps_coming(snapshot: &Snapshot<'_>, node: &str, seconds: u32) -> bool {
    snapshot.clock.has_lasted(&memory(node), seconds)
}

/// Keeps recent hand-backs on record, unless the node needs an agent again.
pub(super) fn remember(snapshot: &Snapshot<'_>, pools: &Pools<'_>) {
    for (place, (node, _)) in snapshot.nodes.iter().enumerate() {
        let memory = memory(node);
        let fresh = snapshot.clock.is_known(&memory) && !snapshot.clock.has_lasted(&memory, REMEMBERED);
        if fresh && pools.assigned[place].is_none() {
            snapshot.clock.end(memory, REMEMBERED);
        }
    }
}

pub(super) fn hand_back(snapshot: &Snapshot<'_>, place: usize, pool: &str) -> Action {
    let shape = NodeShape { handover: Some(new_handover(snapshot, pool)), ..NodeShape::default() };
    shape_node(snapshot, place, shape, NodeStep::HandBack)
}

/// Whether a node of the pool is being handed back. Such nodes have lost their label and are
/// counted by their handover annotation, until the deadline.
fn is_going_back(snapshot: &Snapshot<'_>, pool: &str, seconds: u32) -> bool {
    snapshot.nodes.iter().any(|(name, node)| {
        let late = || {
            snapshot.clock.has_lasted(&Wait::Back { node: (*name).to_owned() }, seconds)
                || keeps_coming(snapshot, name, seconds)
        };
        let counts = node.handover.as_ref().is_some_and(|handover| handover.pool == pool);
        node.pool.is_none() && counts && !late()
    })
}

pub(super) fn new_handover(snapshot: &Snapshot<'_>, pool: &str) -> Handover {
    Handover::new(pool, snapshot.now)
}

fn hand_over(snapshot: &Snapshot<'_>, place: usize, pool: &str, revision: &str) -> Action {
    let node = snapshot.nodes[place].1;
    // A revision that never worked is no rollback target.
    let worked = node.handover.as_ref().map_or(node.revision.clone(), |handover| handover.from.clone());
    let from = worked.filter(|_| node.pool.as_deref() == Some(pool));
    let shape = NodeShape {
        pool: Some(pool.to_owned()),
        revision: Some(revision.to_owned()),
        images: None,
        handover: Some(Handover { from, ..new_handover(snapshot, pool) }),
        failure: None,
    };
    shape_node(snapshot, place, shape, NodeStep::HandOver)
}

fn stop_agent(snapshot: &Snapshot<'_>, place: usize, pool: &str) -> Action {
    let node = snapshot.nodes[place].1;
    let handover = Handover { restart: true, from: node.revision.clone(), ..new_handover(snapshot, pool) };
    let shape = NodeShape { revision: None, handover: Some(handover), ..as_it_is(node) };
    shape_node(snapshot, place, shape, NodeStep::StopAgent)
}

/// The operator's fields of a node, unchanged.
pub(super) fn as_it_is(node: &Node) -> NodeShape {
    NodeShape {
        pool: node.pool.clone(),
        revision: node.revision.clone(),
        images: node.images.clone(),
        handover: node.handover.clone(),
        failure: node.failure.clone(),
    }
}

pub(super) fn shape_node(snapshot: &Snapshot<'_>, place: usize, shape: NodeShape, step: NodeStep) -> Action {
    let (name, node) = snapshot.nodes[place];
    Action::ShapeNode { node: name.to_owned(), identity: node.identity.clone(), shape, step }
}
