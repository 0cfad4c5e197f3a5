//! The status of nodes and pools: step 2, the ingress nodes, the nodes that are left out, and the
//! progress of each pool.

use isp_api::Reason;
use isp_api::names::BESIDE_MODE;
use isp_api::preserve::{IngressSourcePreserveStatus, LeftOut, Mode, PoolStatus};

use super::{NewCondition, StatusBuilder, no, with_more, yes};
use crate::plan::pools::Pool;
use crate::plan::rollout::{State, whose};
use crate::plan::{accounts, kube_proxy};

/// The maximum number of nodes listed by name.
const MOST_NAMES: usize = 20;

impl StatusBuilder<'_, '_> {
    /// The condition of step 2.
    pub(super) fn agents(&self, elsewhere: usize) -> NewCondition {
        let done = self.elsewhere().filter(|(_, _, state)| **state == State::Done).count();
        let whose = whose(self.object.mode);
        if done == elsewhere {
            return match self.other_mode() {
                Some(left) => no(Reason::RollingOut, left),
                None => yes(Reason::AgentsReady, format!("all {elsewhere} {whose} have their agent")),
            };
        }
        if let Some(problem) = self.own_pools().find_map(|(_, pool)| pool.made.as_ref().err())
            && matches!(problem, kube_proxy::Problem::NotKeptOff { .. })
        {
            return no(problem.reason(), problem.to_string());
        }
        let account = || match self.object.mode {
            Mode::Filter => self.own_pools().find_map(|(_, pool)| pool.account.as_ref().err()),
            Mode::Beside => self.rollout.beside.account.as_ref().err(),
        };
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
            .map(|(pool, node, reason)| match self.object.mode {
                Mode::Filter => format!("pool {}, node {node}: {reason}", pool.unwrap_or("?")),
                Mode::Beside => format!("node {node}: {reason}"),
            })
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
            format!("{done} of {elsewhere} {whose} have the current revision of their agent")
        } else {
            format!("{done} of {elsewhere} {whose} have their agent")
        };
        no(Reason::RollingOut, message)
    }

    /// What is left of the mode that the object had before.
    fn other_mode(&self) -> Option<String> {
        match self.object.mode {
            Mode::Filter if self.object.keeps_beside => {
                Some("the agents of mode Beside stay until kube-proxies serve every Service again".to_owned())
            }
            Mode::Beside if self.rollout.on_the_way_back() => {
                Some("nodes are being handed back to the cluster's kube-proxy".to_owned())
            }
            Mode::Beside | Mode::Filter => None,
        }
    }

    /// The nodes that need an agent: pool, name, state.
    pub(super) fn elsewhere(&self) -> impl Iterator<Item = (Option<&str>, &str, &State)> {
        self.snapshot.nodes.iter().enumerate().filter(|(place, _)| self.object.needs_agent(*place)).map(
            |(place, (name, _))| (self.pools.assigned[place], *name, self.rollout.state(self.object, place)),
        )
    }

    /// The pools that contain the object's non-ingress nodes. None in mode Beside.
    pub(super) fn own_pools(&self) -> impl Iterator<Item = (&str, &Pool<'_>)> {
        self.pools
            .by_name
            .iter()
            .filter(|_| self.object.mode == Mode::Filter)
            .filter(|(_, pool)| pool.members.iter().any(|node| self.object.needs_agent(*node)))
            .map(|(name, pool)| (*name, pool))
    }

    /// The first suspect node that matches: one where the cluster's own kube-proxy runs, or ran,
    /// beside the agent.
    pub(super) fn suspect(&self, of: impl Fn(usize) -> bool) -> Option<&str> {
        let mut places = self.snapshot.nodes.iter().enumerate();
        let (_, (name, _)) = places.find(|(place, _)| {
            self.object.needs_agent(*place)
                && *self.rollout.state(self.object, *place) == State::Suspect
                && of(*place)
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

    /// Nodes that can have no agent: non-ingress nodes on which the cluster's kube-proxy never
    /// runs, or, in mode Beside, nodes without a network of their own.
    pub(super) fn left_out(&self) -> Option<LeftOut> {
        let left_out = |place: &usize| {
            self.object.left_out[*place] && (!self.object.ingress[*place] || self.object.mode == Mode::Beside)
        };
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
        if self.object.mode == Mode::Beside {
            return vec![self.beside_status()];
        }
        let mut pools: Vec<PoolStatus> = Vec::new();
        for (name, pool) in self.own_pools() {
            let members = pool.members.iter().filter(|node| self.object.needs_agent(**node));
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

    /// The agents of mode Beside, which are one pool of all nodes.
    fn beside_status(&self) -> PoolStatus {
        let count = |holds: &dyn Fn(usize) -> bool| {
            let places = (0..self.snapshot.nodes.len()).filter(|place| self.object.needs_agent(*place));
            u32::try_from(places.filter(|place| holds(*place)).count()).unwrap_or(u32::MAX)
        };
        PoolStatus {
            name: BESIDE_MODE.to_owned(),
            nodes: count(&|_| true),
            handed_over: count(&|place| self.rollout.beside.has_pod[place]),
            ready: count(&|place| self.rollout.has_acknowledged(self.snapshot, self.object, place)),
            failed: count(&|place| matches!(self.rollout.beside.states[place], State::Late(_))),
            updated: None,
        }
    }
}
