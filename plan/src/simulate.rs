//! An idealised API server, DaemonSet controller and agents that execute plans. Predicts the
//! outcome of a plan, for the tests of [`plan`](mod@crate::plan) and for `kubectl isp plan`. Pure:
//! its clock is a field.
//!
//! | file | simulates |
//! |---|---|
//! | `writes` | the API server's handling of the operator's writes, as far as the facts show it |
//! | `controllers` | DaemonSet controller, kubelets and agents, without delay |
//!
//! Not simulated:
//! - Time: writes, pod starts and acknowledgements take none. Time advances by a second per round,
//!   and to the wake-up time when only waits are left.
//! - Failures, unless configured: images are available, pods become ready on ready nodes, agents
//!   acknowledge, and writes are rejected only by their precondition.
//! - Other actors: nothing is reverted, application pods do not move, and nodes do not come or go.
//! - Resources: a DaemonSet's pods run wherever its node selector, required node affinity and
//!   tolerations permit.
//! - DaemonSet rollouts: a changed template replaces all pods at once.
//! - Kernel state: rules that another kube-proxy left behind do not exist.

mod controllers;
mod writes;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use thiserror::Error;

use crate::action::Action;
use crate::cluster::{Cluster, Identity};
use crate::plan::{Plan, Settings, plan};
use crate::waits::Waits;

#[cfg(test)]
pub(crate) use self::writes::{set_terms, write_policy};

#[cfg(test)]
mod tests;

/// A simulated cluster. [`carry_out`](Self::carry_out) and [`controllers`](Self::controllers) act
/// only when called; [`settle`](Self::settle) calls them in turn.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// The current state of the cluster.
    pub cluster: Cluster,
    /// The operator's startup configuration.
    pub settings: Settings,
    /// The current time.
    pub now: Timestamp,
    /// Nodes on which no agent starts, with the reason.
    pub broken: BTreeMap<String, String>,
    /// Nodes on which the agents' images cannot be pulled, with the reason.
    pub unpullable: BTreeMap<String, String>,
    /// Nodes on which the cluster's kube-proxy does not terminate.
    pub lingering: BTreeSet<String>,
    /// The waits of the last plan.
    pub(crate) waits: RefCell<Waits>,
    /// Source of resource versions and UIDs.
    pub(crate) counter: u64,
}

/// Planning did not converge.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("not settled after {rounds} rounds; left: {}", left.join(", "))]
pub struct Unsettled {
    /// The number of planning rounds.
    pub rounds: usize,
    /// The actions that are still planned.
    pub left: Vec<String>,
}

impl Simulation {
    /// Starts from the given state.
    pub fn new(cluster: Cluster, settings: Settings, now: Timestamp) -> Self {
        // Larger than the resource versions of the real API server, to avoid reusing one.
        let counter = now.as_microsecond().unsigned_abs();
        Self {
            cluster,
            settings,
            now,
            broken: BTreeMap::new(),
            unpullable: BTreeMap::new(),
            lingering: BTreeSet::new(),
            waits: RefCell::default(),
            counter,
        }
    }

    /// Plans one round.
    pub fn plan(&self) -> Plan {
        let before = self.waits.take();
        let plan = plan(&self.cluster, &self.settings, &before, self.now);
        self.waits.replace(plan.waits.clone());
        plan
    }

    /// Plans and executes, running the controllers in between, until there is nothing left to do or
    /// wait for. `each` is called before every action is executed, with the number of preceding
    /// rounds.
    pub fn settle(&mut self, mut each: impl FnMut(&Self, usize, &Action)) -> Result<(), Unsettled> {
        let Cluster { nodes, services, objects, .. } = &self.cluster;
        let rounds = 60 + 12 * (nodes.len() + services.len() + objects.len());
        for round in 0..rounds {
            self.controllers();
            let plan = self.plan();
            if plan.actions.is_empty() {
                let Some(wake) = plan.wake else { return Ok(()) };
                self.now = self.now.max(wake);
                continue;
            }
            for action in &plan.actions {
                each(self, round, action);
                self.carry_out(action);
            }
            self.pass(SignedDuration::from_secs(1));
        }
        let left = self.plan().actions.iter().map(ToString::to_string).collect();
        Err(Unsettled { rounds, left })
    }

    /// Advances the clock.
    pub fn pass(&mut self, time: SignedDuration) {
        self.now = self.now.saturating_add(time).unwrap_or(Timestamp::MAX);
    }

    /// A unique identity.
    pub(crate) fn identity(&mut self) -> Identity {
        let version = self.version();
        Identity { uid: format!("uid-{version}"), version }
    }

    /// A resource version newer than all previous ones.
    pub(crate) fn version(&mut self) -> String {
        self.counter += 1;
        self.counter.to_string()
    }
}
