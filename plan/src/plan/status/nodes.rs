//! The status of nodes and pools: step 2, the ingress nodes, the nodes that are left out, and the
//! progress of each pool.

use isp_api::Reason;
use isp_api::preserve::{IngressSourcePreserveStatus, LeftOut, PoolStatus};

use super::{NewCondition, StatusBuilder, no, with_more, yes};
use crate::plan::pools::Pool;
use crate::plan::rollout::State;
use crate::plan::{accounts, kube_proxy};

/// The maximum number of nodes listed by name.
const MOST_NAMES: usize = 20;

impl StatusBuilder<'_, '_> {
    /// The condition of step 2.
    pub(super) fn agents(&self, elsewhere: usize) -> NewCondition {
        let done = self.elsewhere().filter(|(_, _, state)| **state == State::Done).count();
        if done == elsewhere {
            return yes(Reason::AgentsReady, format!("all {elsewhere} non-ingress nodes have their agent"));
        }
        if let Some(problem) = self.own_pools().find_map(|(_, pool)| pool.made.as_ref().err())
            && matches!(problem, kube_proxy::Problem::NotKeptOff { .. })
        {
            return no(problem.reason(), problem.to_string());
        }
        let account = || self.own_pools().find_map(|(_, pool)| pool.account.as_ref().err());
        if let Some(problem @ accounts::Problem::Taken(_)) = account() {
            return no(problem.reason(), problem.to_string());
        }
        let failures: Vec<String> = self
            .elsewhere()
            .filter_map(|(pool, node, state)| match state {
                State::Late(reason) | State::Failed(reason) => Some((pool, node, reason.clone())),
                State::GoingBack => {
                    let failure = self.snapshot.cluster.nodes.get(node)?.failure.as_ref()?;
                    Some((pool, node, failure.reason.clone()))
                }
                _ => None,
            })
            .map(|(pool, node, reason)| format!("pool {}, node {node}: {reason}", pool.unwrap_or("?")))
            .collect();
        if let Some(first) = failures.first() {
            let message = format!("a wave missed its deadline: {first}");
            return no(Reason::WaveFailed, with_more(message, failures.len() - 1));
        }
        let unready: Vec<_> = self
            .elsewhere()
            .filter_map(|(_, node, state)| match state {
                State::NotReady { reason, .. } => {
                    Some(format!("the agent of node {node} is not ready: {reason}"))
                }
                _ => None,
            })
            .collect();
        if let Some(first) = unready.first() {
            return no(Reason::AgentNotReady, with_more(first.clone(), unready.len() - 1));
        }
        if let Some(problem) = self.own_pools().find_map(|(_, pool)| pool.made.as_ref().err()) {
            return no(problem.reason(), problem.to_string());
        }
        let without: Vec<_> = self
            .elsewhere()
            .filter(|(_, _, state)| **state == State::WithoutPool)
            .map(|(_, node, _)| node)
            .collect();
        if let Some(first) = without.first() {
            let message = format!(
                "node {first} needs an agent and matches no pool: extend a selector in spec.nodePools, or make it an ingress node"
            );
            return no(Reason::NodeWithoutPool, with_more(message, without.len() - 1));
        }
        if !self.object.may_begin() {
            return no(Reason::NotBegun, "waiting for the other conditions");
        }
        if let Some(problem) = account() {
            return no(problem.reason(), problem.to_string());
        }
        if self.object.written.spec.rollout.paused {
            return no(
                Reason::Paused,
                format!("{done} of {elsewhere} nodes have their agent; spec.rollout.paused is set"),
            );
        }
        let unreachable: Vec<_> = self
            .elsewhere()
            .filter(|(_, _, state)| **state == State::Unreachable)
            .map(|(_, node, _)| node)
            .collect();
        if let Some(first) = unreachable.first()
            && done + unreachable.len() == elsewhere
        {
            let message =
                format!("node {first} is not ready, so it cannot get its agent: bring it back or delete it");
            return no(Reason::NodeNotReady, with_more(message, unreachable.len() - 1));
        }
        let outdated = self.elsewhere().filter(|(_, _, state)| **state == State::Outdated).count();
        let message = if outdated > 0 {
            format!("{done} of {elsewhere} non-ingress nodes have the current revision of their agent")
        } else {
            format!("{done} of {elsewhere} non-ingress nodes have their agent")
        };
        no(Reason::RollingOut, message)
    }

    /// The non-ingress nodes: pool, name, state.
    pub(super) fn elsewhere(&self) -> impl Iterator<Item = (Option<&str>, &str, &State)> {
        self.snapshot
            .nodes
            .iter()
            .enumerate()
            .filter(|(place, _)| self.object.is_elsewhere(*place))
            .map(|(place, (name, _))| (self.pools.assigned[place], *name, &self.rollout.states[place]))
    }

    /// The pools that contain the object's non-ingress nodes.
    pub(super) fn own_pools(&self) -> impl Iterator<Item = (&str, &Pool<'_>)> {
        self.pools
            .by_name
            .iter()
            .filter(|(_, pool)| pool.members.iter().any(|node| self.object.is_elsewhere(*node)))
            .map(|(name, pool)| (*name, pool))
    }

    /// The first suspect node that matches: one where the cluster's own kube-proxy runs, or ran,
    /// beside the agent.
    pub(super) fn suspect(&self, of: impl Fn(usize) -> bool) -> Option<&str> {
        let mut places = self.snapshot.nodes.iter().enumerate();
        let (_, (name, _)) = places.find(|(place, _)| {
            self.object.is_elsewhere(*place) && self.rollout.states[*place] == State::Suspect && of(*place)
        })?;
        Some(name)
    }

    /// The nodes that show the Services in full. None until the checks have passed once.
    pub(super) fn ingress_nodes(&self, before: &IngressSourcePreserveStatus) -> Option<Vec<String>> {
        let object = self.object;
        let passed = object.held
            && object.deletion.is_none()
            && object.checks.is_empty()
            && object.conflicts.is_empty();
        if before.ingress_nodes.is_none() && !passed {
            return None;
        }
        let nodes = self.snapshot.nodes.iter().enumerate().filter(|(place, _)| object.ingress[*place]);
        Some(nodes.map(|(_, (name, _))| (*name).to_owned()).collect())
    }

    /// Non-ingress nodes on which the cluster's kube-proxy never runs.
    pub(super) fn left_out(&self) -> Option<LeftOut> {
        let left_out = |place: &usize| self.object.left_out[*place] && !self.object.ingress[*place];
        let names: Vec<_> = (0..self.snapshot.nodes.len())
            .filter(left_out)
            .map(|place| self.snapshot.nodes[place].0)
            .collect();
        (!names.is_empty()).then(|| LeftOut {
            count: u32::try_from(names.len()).unwrap_or(u32::MAX),
            nodes: names.iter().take(MOST_NAMES).map(|name| (*name).to_owned()).collect(),
        })
    }

    pub(super) fn node_pools(&self) -> Vec<PoolStatus> {
        let mut pools: Vec<PoolStatus> = Vec::new();
        for (name, pool) in self.own_pools() {
            let members = pool.members.iter().filter(|node| self.object.is_elsewhere(**node));
            let (mut nodes, mut handed_over, mut ready, mut failed, mut updated) = (0, 0, 0, 0, 0);
            for place in members {
                nodes += 1;
                let (_, facts) = self.snapshot.nodes[*place];
                handed_over += u32::from(facts.pool.as_deref() == Some(name));
                let current = self.rollout.has_acknowledged(self.snapshot, self.object, *place);
                ready += u32::from(current);
                updated += u32::from(
                    facts.pool.as_deref() == Some(name) && facts.revision.as_deref() == pool.revision(),
                );
                failed += u32::from(matches!(self.rollout.states[*place], State::Late(_) | State::Failed(_)));
            }
            pools.push(PoolStatus {
                name: name.to_owned(),
                nodes,
                handed_over,
                ready,
                failed,
                updated: Some(updated),
            });
        }
        pools
    }
}
