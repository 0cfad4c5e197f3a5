//! One node and the facts about it.

use isp_api::node::AgentMode;
use k8s_openapi::jiff::Timestamp;

use super::super::pools::Pools;
use super::super::snapshot::{Object, Snapshot};
use super::pods::Pods;
use super::wave::{keeps_coming, sent_back};
use super::{as_it_is, new_handover, shape_node};
use crate::action::{Action, NodeShape, NodeStep};
use crate::cluster::{Acknowledgements, Node, Pod};
use crate::record::{Failure, Handover};
use crate::waits::Wait;

pub(super) struct NodeFacts<'s, 'a> {
    pub(super) snapshot: &'s Snapshot<'a>,
    pub(super) pools: &'s Pools<'a>,
    pub(super) pods: &'s Pods<'a>,
    pub(super) place: usize,
    pub(super) name: &'a str,
    pub(super) node: &'a Node,
}

/// Whether the node has acknowledged the object's generation with the expected view.
pub(super) fn acknowledges(said: &Acknowledgements, object: &Object<'_>, place: usize) -> bool {
    said.get(object.uid)
        .is_some_and(|said| said.generation == object.generation && said.view == object.view(place))
}

impl<'s> NodeFacts<'s, '_> {
    pub(super) fn shape(&self, shape: NodeShape, step: NodeStep) -> Action {
        shape_node(self.snapshot, self.place, shape, step)
    }

    pub(super) fn as_it_is(&self) -> NodeShape {
        as_it_is(self.node)
    }

    pub(super) fn handover(&self, pool: &str) -> Handover {
        new_handover(self.snapshot, pool)
    }

    /// The deadline for the handover to its current revision.
    pub(super) fn over_by(&self, seconds: u32) -> Timestamp {
        let revision = self.node.revision.clone().unwrap_or_default();
        self.snapshot.clock.end(Wait::Over { node: self.name.to_owned(), revision }, seconds)
    }

    /// The deadline for the hand-back.
    pub(super) fn back_by(&self, seconds: u32) -> Timestamp {
        self.snapshot.clock.end(Wait::Back { node: self.name.to_owned() }, seconds)
    }

    /// Records that the node was sent back.
    pub(super) fn send_back(&self) {
        sent_back(self.snapshot, self.name);
    }

    /// Whether the node was first sent back longer ago than this although no object needs an agent
    /// there: something keeps restoring the operator's labels or annotations.
    pub(super) fn keeps_coming(&self, seconds: u32) -> bool {
        keeps_coming(self.snapshot, self.name, seconds)
    }

    /// Whether the previous plan already waited for its hand-back.
    pub(super) fn was_sent_back(&self) -> bool {
        self.snapshot.clock.is_known(&Wait::Back { node: self.name.to_owned() })
    }

    /// The target revision of the pool.
    pub(super) fn revision(&self, pool: &str) -> Option<&'s str> {
        self.pools.by_name.get(pool)?.revision()
    }

    pub(super) fn has_revision(&self, revision: &str) -> bool {
        self.node.revision.as_deref() == Some(revision)
    }

    /// Whether the node pulls the images of this revision.
    pub(super) fn pulls(&self, revision: &str) -> bool {
        self.node.images.as_deref() == Some(revision)
    }

    /// The recorded failure of the pool's current revision, which is not retried on this node.
    pub(super) fn failure(&self, pool: &str) -> Option<&'s Failure> {
        let revision = self.revision(pool);
        self.node.failure.as_ref().filter(|failure| {
            failure.pool == pool && revision.is_none_or(|revision| revision == failure.revision)
        })
    }

    /// The agent's pod, of the node's revision.
    fn agent(&self, pool: &str) -> Option<&Pod> {
        self.pods.agent(self.name, Some((pool, self.node.revision.as_deref()?)))
    }

    /// Whether the agent is ready and has acknowledged every object that needs it.
    pub(super) fn is_complete(&self, pool: &str) -> bool {
        self.agent(pool).is_some_and(|pod| pod.ready) && self.missing(pool).is_none()
    }

    /// Whether the node is handed over, its agent is ready, and no other kube-proxy writes rules.
    pub(super) fn works(&self, pool: &str) -> bool {
        self.node.handover.is_none()
            && self.node.pool.as_deref() == Some(pool)
            && self.unready(pool).is_none()
            && !self.has_stray(pool)
    }

    /// The reason why the acknowledgement is incomplete, if it is.
    fn missing(&self, pool: &str) -> Option<String> {
        let heard = self.snapshot.cluster.report(self.name, AgentMode::Filter);
        let heard = heard.filter(|report| {
            report.pool == pool && Some(report.revision.as_str()) == self.node.revision.as_deref()
        });
        let Some(report) = heard else { return Some("the agent has not reported".to_owned()) };
        if !report.active {
            return Some("kube-proxy is not connected to the agent".to_owned());
        }
        if self.has_stray(pool) {
            return Some("the cluster's own kube-proxy has not ended on this node".to_owned());
        }
        let asked = self.snapshot.needing(self.place);
        let mut asked = asked.filter(|object| object.deletion.is_none() && !object.label_is_taken());
        let behind = asked.find(|object| !acknowledges(&report.acknowledged, object, self.place))?;
        Some(format!("the agent has not acknowledged generation {} of {}", behind.generation, behind.name))
    }

    /// Whether the cluster's own kube-proxy runs here beside the agent's.
    pub(super) fn has_stray(&self, pool: &str) -> bool {
        let made = self.pools.by_name.get(pool).and_then(|pool| pool.made.as_ref().ok());
        let displaced = made.and_then(|made| made.origin.displaced());
        displaced.is_some_and(|(kube_proxy, _)| self.pods.has_kube_proxy(self.name, kube_proxy))
    }

    /// Why the agent of a handed-over node is not ready.
    pub(super) fn unready(&self, pool: &str) -> Option<String> {
        match self.agent(pool) {
            Some(Pod { ready: true, .. }) => None,
            _ => Some(self.trouble(pool)),
        }
    }

    /// Why the node missed its deadline.
    pub(super) fn trouble(&self, pool: &str) -> String {
        if !self.node.ready {
            return "the node is not ready".to_owned();
        }
        match self.agent(pool) {
            None => "the agent has no pod yet".to_owned(),
            Some(Pod { trouble: Some(trouble), .. }) => trouble.clone(),
            Some(Pod { ready: false, .. }) => "the agent's pod is not ready".to_owned(),
            Some(_) => self.missing(pool).unwrap_or_default(),
        }
    }

    /// Why the images of a revision are not on the node.
    pub(super) fn image_trouble(&self, revision: &str) -> String {
        match self.pods.images(self.name, revision) {
            None => "no pod pulls the agent's images yet".to_owned(),
            Some(Pod { trouble: Some(trouble), .. }) => trouble.clone(),
            Some(_) => "the agent's images are not pulled".to_owned(),
        }
    }

    /// Whether the cluster's kube-proxy serves the node again, or there is nothing to wait for: no
    /// kube-proxy is known or the node is not ready.
    pub(super) fn is_back(&self) -> bool {
        self.snapshot.kube_proxies.is_empty() || !self.node.ready || self.pods.kube_proxy_is_ready(self.name)
    }
}
