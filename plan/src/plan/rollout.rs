//! Step 2: which node goes over to the agent, or back, and when.
//!
//! | the node carries | and should be in | then |
//! |---|---|---|
//! | pool P, going over | P | it has gone over when its agent is ready and has acknowledged; late, it is rolled back or waited for |
//! | pool P | P | it is done |
//! | pool P | Q | it is a candidate for Q |
//! | nothing | P | it is a candidate, unless an agent with the same settings has failed there |
//! | pool P | nothing | it is a candidate for the way back, unless the pool is retained |
//! | nothing, going back | | it has gone back when the cluster's kube-proxy is ready there |
//!
//! A wave begins in a pool when nobody there is on the way, in either direction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use isp_api::names::AGENT_NAME;
use isp_api::preserve::OnFailure;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::Plan;
use super::kube_proxy::is_kept_off;
use super::pools::{Pools, pool_is_retained, settings_of};
use super::scene::{Object, Scene};
use crate::action::{Action, NodeShape, NodeStep};
use crate::cluster::{Node, Pod};
use crate::observe::is_pool;
use crate::record::{Failure, Handover};

/// How a node is, as far as agents are concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It needs no agent.
    NotNeeded,
    /// It needs one, and belongs to no pool.
    WithoutPool,
    /// It needs one and waits for its turn.
    Waiting,
    /// It waits, and its kubelet does not answer.
    Unreachable,
    /// It goes over to the agent.
    GoingOver,
    /// It should have gone over by now.
    Late(String),
    /// It was rolled back.
    Failed(String),
    /// It has its agent.
    Done,
    /// It goes back to the cluster's kube-proxy.
    GoingBack,
}

pub(super) struct Rollout<'a> {
    pub(super) states: Vec<State>,
    /// Of each node that needs an agent, whether the cluster's own kube-proxy runs there as well. As long as it does, it writes rules,
    /// too, and sees everything.
    pub(super) strays: Vec<bool>,
    /// Pools in which no wave begins, because of nodes that are late or have failed.
    pub(super) held: BTreeSet<&'a str>,
    on_the_way_back: bool,
}

/// Nodes of one pool, by their place in the scene.
#[derive(Default)]
struct Wave {
    on_the_way: usize,
    over: Vec<usize>,
    back: Vec<usize>,
}

impl<'a> Rollout<'a> {
    pub(super) fn new(scene: &Scene<'a>, pools: &Pools<'a>, plan: &mut Plan) -> Self {
        let pods = Pods::new(scene);
        let (states, strays) = (Vec::new(), Vec::new());
        let mut this = Self { states, strays, held: BTreeSet::new(), on_the_way_back: false };
        let mut waves: BTreeMap<&'a str, Wave> = BTreeMap::new();
        for (place, (name, node)) in scene.nodes.iter().copied().enumerate() {
            let wanted = pools.assigned[place];
            let watch = Watch { scene, pools, pods: &pods, place, name, node };
            let state = match (node.pool.as_deref(), wanted) {
                (Some(has), Some(wanted)) if has == wanted => {
                    this.over_or_there(&watch, wanted, &mut waves, plan)
                }
                (Some(_), Some(wanted)) => this.candidate(&watch, wanted, &mut waves),
                (None, Some(wanted)) if node.handover.is_none() => this.candidate(&watch, wanted, &mut waves),
                (Some(has), None) if pool_is_retained(scene, has) => State::NotNeeded,
                (Some(has), None) => {
                    this.on_the_way_back = true;
                    waves.entry(has).or_default().back.push(place);
                    State::GoingBack
                }
                (None, _) => this.coming_back(&watch, wanted, &mut waves, plan),
            };
            this.states.push(state);
            this.strays.push(wanted.is_some_and(|pool| watch.has_stray(pool)));
        }
        for (pool, wave) in &waves {
            this.begin(scene, pools, pool, wave, plan);
        }
        this.forget(scene, &pods, plan);
        this
    }

    /// A node with the label of its pool.
    fn over_or_there(
        &mut self,
        watch: &Watch<'_, 'a>,
        pool: &'a str,
        waves: &mut BTreeMap<&'a str, Wave>,
        plan: &mut Plan,
    ) -> State {
        let Some(handover) = &watch.node.handover else { return State::Done };
        let settings = settings_of(watch.scene, pool);
        let deadline = handover.started + seconds(settings.progress_deadline_seconds);
        let wave = waves.entry(pool).or_default();
        if watch.is_complete(pool) {
            wave.on_the_way += 1;
            let shape = NodeShape { pool: Some(pool.to_owned()), ..NodeShape::default() };
            plan.actions.push(watch.shape(shape, NodeStep::HandedOver));
            return State::GoingOver;
        }
        if watch.scene.now < deadline {
            wave.on_the_way += 1;
            plan.wake_at(deadline);
            return State::GoingOver;
        }
        let reason = watch.trouble(pool);
        self.held.insert(pool);
        match settings.on_failure {
            OnFailure::Pause => State::Late(reason),
            OnFailure::RollBack => {
                let revision = watch.revision(pool).unwrap_or_default().to_owned();
                let failure = Failure { pool: pool.to_owned(), revision, reason: reason.clone() };
                let shape =
                    NodeShape { pool: None, handover: Some(watch.handover(pool)), failure: Some(failure) };
                plan.actions.push(watch.shape(shape, NodeStep::RollBack));
                State::Failed(reason)
            }
        }
    }

    /// A node that should be in a pool and is not.
    fn candidate(
        &mut self,
        watch: &Watch<'_, 'a>,
        pool: &'a str,
        waves: &mut BTreeMap<&'a str, Wave>,
    ) -> State {
        let failed = watch.node.failure.as_ref().filter(|failure| {
            failure.pool == pool && watch.revision(pool).is_none_or(|revision| revision == failure.revision)
        });
        match failed {
            Some(failure) => {
                // A node that is down anyway holds up nobody else.
                if watch.node.ready {
                    self.held.insert(pool);
                }
                State::Failed(failure.reason.clone())
            }
            None if !watch.node.ready => State::Unreachable,
            None => {
                waves.entry(pool).or_default().over.push(watch.place);
                State::Waiting
            }
        }
    }

    /// A node without a label: going back, back, or never gone.
    fn coming_back(
        &mut self,
        watch: &Watch<'_, 'a>,
        wanted: Option<&'a str>,
        waves: &mut BTreeMap<&'a str, Wave>,
        plan: &mut Plan,
    ) -> State {
        let node = watch.node;
        if let Some(handover) = &node.handover {
            self.on_the_way_back = true;
            let settings = settings_of(watch.scene, &handover.pool);
            let deadline = handover.started + seconds(settings.progress_deadline_seconds);
            if let Some(pool) = wanted.filter(|pool| *pool == handover.pool) {
                waves.entry(pool).or_default().on_the_way += 1;
            }
            // Waited for in vain: the label is gone, so kube-proxy comes whenever it can.
            if watch.is_back() || watch.scene.now >= deadline {
                let shape = NodeShape { failure: node.failure.clone(), ..NodeShape::default() };
                plan.actions.push(watch.shape(shape, NodeStep::HandedBack));
            } else {
                plan.wake_at(deadline);
            }
            return State::GoingBack;
        }
        if watch.scene.needs_agent(watch.place) {
            return State::WithoutPool;
        }
        if node.failure.is_some() {
            self.on_the_way_back = true;
            plan.actions.push(watch.shape(NodeShape::default(), NodeStep::Release));
        }
        State::NotNeeded
    }

    /// Begins the next wave of a pool.
    fn begin(&self, scene: &Scene<'a>, pools: &Pools<'a>, pool: &str, wave: &Wave, plan: &mut Plan) {
        // Those on their way back have lost their label and are counted by what is written down on them.
        let going_back = scene.nodes.iter().any(|(_, node)| {
            node.pool.is_none() && node.handover.as_ref().is_some_and(|handover| handover.pool == pool)
        });
        if wave.on_the_way > 0 || going_back {
            return;
        }
        let settings = settings_of(scene, pool);
        if !wave.back.is_empty() && scene.orphans.is_empty() {
            let labelled = scene.nodes.iter().filter(|(_, node)| node.pool.as_deref() == Some(pool)).count();
            for place in wave.back.iter().take(settings.max_unavailable.of(labelled)) {
                let handover = Some(Handover { pool: pool.to_owned(), started: scene.now });
                let shape = NodeShape { handover, ..NodeShape::default() };
                plan.actions.push(shape_node(scene, *place, shape, NodeStep::HandBack));
            }
            return;
        }
        let Some(found) = pools.pools.get(pool) else { return };
        let prepared = found.made.as_ref().is_ok_and(|made| made.present && is_kept_off(made.kube_proxy.1));
        if settings.paused || self.held.contains(pool) || !found.begun || !prepared {
            return;
        }
        let may_begin = |place: &&usize| scene.needing(**place).any(Object::may_begin);
        // What an earlier agent has reported must not be taken for the word of the new one.
        let unknown = |place: &&usize| !scene.cluster.reports.contains_key(scene.nodes[**place].0);
        let moves = |place: &&usize| scene.nodes[**place].1.pool.is_some();
        let next = wave.over.iter().filter(may_begin).filter(|place| unknown(place) || moves(place));
        for place in next.take(settings.max_unavailable.of(found.members.len())) {
            let shape = NodeShape {
                pool: Some(pool.to_owned()),
                handover: Some(Handover { pool: pool.to_owned(), started: scene.now }),
                failure: None,
            };
            plan.actions.push(shape_node(scene, *place, shape, NodeStep::HandOver));
        }
    }

    /// Deletes the reports of agents that are gone.
    fn forget(&mut self, scene: &Scene<'a>, pods: &Pods<'_>, plan: &mut Plan) {
        for (name, report) in &scene.cluster.reports {
            let node = scene.cluster.nodes.get(name);
            if node.is_some_and(|node| node.pool.is_some()) {
                continue;
            }
            // An agent that has not ended yet would write it again. On a node that does not answer it may never end.
            let ending = node.is_some() && pods.agent(name, None).is_some();
            self.on_the_way_back |= node.is_some_and(|node| node.ready || !ending);
            if !ending {
                plan.actions.push(Action::Forget { node: name.clone(), identity: report.identity.clone() });
            }
        }
    }

    /// Whether a node is on its way back to the cluster's kube-proxy, or has something of ours left.
    pub(super) fn on_the_way_back(&self) -> bool {
        self.on_the_way_back
    }

    /// How many nodes are elsewhere for the object, and how many of them have acknowledged its generation and keep to it.
    pub(super) fn acknowledged(&self, scene: &Scene<'_>, object: &Object<'_>) -> (usize, usize) {
        let (mut elsewhere, mut ready) = (0, 0);
        // Nodes that report the same share it, so mostly one look is enough.
        let mut last: Option<(*const _, bool)> = None;
        for (place, (name, _)) in scene.nodes.iter().enumerate() {
            if !object.is_elsewhere(place) {
                continue;
            }
            elsewhere += 1;
            if self.states[place] != State::Done || self.strays[place] {
                continue;
            }
            let Some(report) = scene.cluster.reports.get(*name) else { continue };
            let shared = Arc::as_ptr(&report.acknowledged);
            let acknowledged = match last {
                Some((known, answer)) if known == shared => answer,
                _ => report.acknowledged.get(object.uid) == Some(&object.generation),
            };
            last = Some((shared, acknowledged));
            ready += usize::from(acknowledged);
        }
        (elsewhere, ready)
    }
}

/// One node, and what is known about it.
struct Watch<'s, 'a> {
    scene: &'s Scene<'a>,
    pools: &'s Pools<'a>,
    pods: &'s Pods<'a>,
    place: usize,
    name: &'a str,
    node: &'a Node,
}

impl Watch<'_, '_> {
    fn shape(&self, shape: NodeShape, step: NodeStep) -> Action {
        shape_node(self.scene, self.place, shape, step)
    }

    fn handover(&self, pool: &str) -> Handover {
        Handover { pool: pool.to_owned(), started: self.scene.now }
    }

    fn revision(&self, pool: &str) -> Option<&str> {
        let made = self.pools.pools.get(pool)?.made.as_ref().ok()?;
        Some(&made.revision)
    }

    /// Whether the agent is ready and has acknowledged everything that is asked of this node.
    fn is_complete(&self, pool: &str) -> bool {
        self.pods.agent(self.name, Some(pool)).is_some_and(|pod| pod.ready) && self.missing(pool).is_none()
    }

    /// What the agent has not said yet.
    fn missing(&self, pool: &str) -> Option<String> {
        let Some(report) = self.scene.cluster.reports.get(self.name).filter(|report| report.pool == pool)
        else {
            return Some("the agent has not reported".to_owned());
        };
        if !report.connected {
            return Some("kube-proxy is not connected to the agent".to_owned());
        }
        if self.has_stray(pool) {
            return Some("the cluster's own kube-proxy has not ended on this node".to_owned());
        }
        let asked = self.scene.needing(self.place);
        let mut asked = asked.filter(|object| object.going.is_none() && !object.label_is_taken());
        let behind = asked.find(|object| report.acknowledged.get(object.uid) != Some(&object.generation))?;
        Some(format!("the agent has not acknowledged generation {} of {}", behind.generation, behind.name))
    }

    /// Whether the cluster's own kube-proxy runs here, beside the agent's.
    fn has_stray(&self, pool: &str) -> bool {
        let pool = self.pools.pools.get(pool);
        let kube_proxy = pool.and_then(|pool| Some(pool.made.as_ref().ok()?.kube_proxy.0));
        kube_proxy.is_some_and(|set| self.pods.of(self.name).any(|pod| pod.daemon_set == set.name))
    }

    /// Why the node is late.
    fn trouble(&self, pool: &str) -> String {
        if !self.node.ready {
            return "the node is not ready".to_owned();
        }
        match self.pods.agent(self.name, Some(pool)) {
            None => "no pod of the agent has come".to_owned(),
            Some(Pod { trouble: Some(trouble), .. }) => trouble.clone(),
            Some(Pod { ready: false, .. }) => "the agent's pod is not ready".to_owned(),
            Some(_) => self.missing(pool).unwrap_or_default(),
        }
    }

    /// Whether the cluster's kube-proxy serves the node again, or nobody can wait for that.
    fn is_back(&self) -> bool {
        let exists = self.scene.cluster.daemon_sets.values().any(|set| !is_pool(set));
        !exists || !self.node.ready || self.pods.kube_proxy_is_ready(self.name)
    }
}

fn shape_node(scene: &Scene<'_>, place: usize, shape: NodeShape, step: NodeStep) -> Action {
    let (name, node) = scene.nodes[place];
    Action::ShapeNode { node: name.to_owned(), identity: node.identity.clone(), shape, step }
}

fn seconds(count: u32) -> SignedDuration {
    SignedDuration::from_secs(i64::from(count))
}

/// The pods by node.
struct Pods<'a>(BTreeMap<&'a str, Vec<&'a Pod>>);

impl<'a> Pods<'a> {
    fn new(scene: &Scene<'a>) -> Self {
        let mut by_node: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
        for pod in scene.cluster.pods.values() {
            by_node.entry(&pod.node).or_default().push(pod);
        }
        Self(by_node)
    }

    fn of(&self, node: &str) -> impl Iterator<Item = &'a Pod> {
        self.0.get(node).into_iter().flatten().copied()
    }

    /// The agent's pod on the node, of a pool or of any.
    fn agent(&self, node: &str, pool: Option<&str>) -> Option<&'a Pod> {
        self.of(node).find(|pod| match pool {
            Some(pool) => pool_of(pod) == Some(pool),
            None => pool_of(pod).is_some(),
        })
    }

    fn kube_proxy_is_ready(&self, node: &str) -> bool {
        self.of(node).any(|pod| pool_of(pod).is_none() && pod.ready)
    }
}

fn pool_of(pod: &Pod) -> Option<&str> {
    pod.daemon_set.strip_prefix(AGENT_NAME)?.strip_prefix('-')
}

/// The moment a wait that began then is over.
pub(super) fn after(began: Timestamp, count: i64) -> Timestamp {
    began + SignedDuration::from_secs(count)
}
