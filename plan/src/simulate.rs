//! A cluster that does what is planned: an idealised API server, DaemonSet controller and agents. It answers what would
//! come of a plan, for the tests of [`plan`](mod@crate::plan) and for `kubectl isp plan`. Pure: its clock is a field.
//!
//! | file | does what |
//! |---|---|
//! | `writes` | the API server does with the operator's writes, as far as the facts show |
//! | `controllers` | the DaemonSet controller, the kubelets and the agents do, all of it at once |
//!
//! What it leaves out
//! - Time: a write, a pod and an acknowledgement take none. Only what the plan itself waits for passes the time.
//! - Failure, unless it is told of: images are there, pods become ready on ready nodes, agents acknowledge what there is, and no
//!   write is refused except for having been decided on another state of its object.
//! - Everybody else: nobody puts anything back, pods of applications stay where they are, no node comes or goes.
//! - Resources: a DaemonSet's pods run wherever its node selector, its required node affinity and its tolerations admit them.
//! - Pods of a former template: a changed DaemonSet has replaced them at once.
//! - What the kernel holds: rules that another kube-proxy has left are not there.

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

/// See the module. It has no order of its own: [`carry_out`](Self::carry_out) and [`controllers`](Self::controllers) act
/// when they are called, [`settle`](Self::settle) calls them in turn.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// The cluster as it is.
    pub cluster: Cluster,
    /// What the operator was told.
    pub settings: Settings,
    /// The present.
    pub now: Timestamp,
    /// Nodes on which no agent starts, and why.
    pub broken: BTreeMap<String, String>,
    /// Nodes on which the agents' images cannot be pulled, and why.
    pub unpullable: BTreeMap<String, String>,
    /// Nodes on which the cluster's kube-proxy does not end.
    pub lingering: BTreeSet<String>,
    /// What the last plan waited for.
    pub(crate) waits: RefCell<Waits>,
    /// What versions and UIDs are counted by.
    pub(crate) counter: u64,
}

/// Planning did not come to rest.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("not settled after {rounds} rounds; left: {}", left.join(", "))]
pub struct Unsettled {
    /// How often was planned.
    pub rounds: usize,
    /// What would be done next.
    pub left: Vec<String>,
}

impl Simulation {
    /// A cluster as it is now.
    pub fn new(cluster: Cluster, settings: Settings, now: Timestamp) -> Self {
        // No version that the real API server has given is given again.
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

    /// What is to be done now.
    pub fn plan(&self) -> Plan {
        let before = self.waits.take();
        let plan = plan(&self.cluster, &self.settings, &before, self.now);
        self.waits.replace(plan.waits.clone());
        plan
    }

    /// Plans and carries out, with the controllers in between, until nothing is left to do or to wait for. `each` is told of every
    /// action before it is carried out, and by how many plans came before its own.
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

    /// Lets time pass, to the end of all times at most.
    pub fn pass(&mut self, time: SignedDuration) {
        self.now = self.now.saturating_add(time).unwrap_or(Timestamp::MAX);
    }

    /// An identity that nothing else has.
    pub(crate) fn identity(&mut self) -> Identity {
        let version = self.version();
        Identity { uid: format!("uid-{version}"), version }
    }

    /// A version that is newer than all before.
    pub(crate) fn version(&mut self) -> String {
        self.counter += 1;
        self.counter.to_string()
    }
}
