//! All ordering, interlocks and conflict rules.
//!
//! | file | decides |
//! |---|---|
//! | `snapshot` | which Services each object may change, and which nodes are non-ingress nodes for it |
//! | `ingress` | which nodes show an object's Services in full, so that the last serving node is never cut off |
//! | `checks` | step 1: preconditions for starting on an object |
//! | `kube_proxy` | which DaemonSet is the cluster's kube-proxy, and the node affinity that keeps it off nodes with an agent |
//! | `accounts` | the agents' ServiceAccount and its RBAC |
//! | `pools` | the agents' DaemonSets |
//! | `beside` | the agents of mode Beside, which belong to no pool |
//! | `rollout` | step 2: which nodes are handed over to the agent, or back, and when |
//! | `services` | steps 3 to 5 and their reversal: the label and the policy of each Service |
//! | `sidecars` | the admission objects that set Istio's interception mode on new pods, and the count of existing pods |
//! | `status` | status, conditions and Events |
//!
//! Each interlock is implemented in one place:
//! - Nothing is changed for an object without our finalizer: `Object::may_begin`, `Object::held`.
//! - No agent DaemonSet is created before the ServiceAccount and its RBAC exist, and those are
//!   deleted after the last agent: `accounts`, `Pools::plan`.
//! - No node is handed over before kube-proxy's node affinity excludes nodes with an agent, the
//!   DaemonSet of the revision exists, and the revision's images are on the node: `rollout`.
//! - The last node that serves a Service keeps showing it in full: `ingress`.
//! - No Service gets the label or the policy before every non-ingress node has acknowledged the
//!   object's generation, or without a ready endpoint on an ingress node:
//!   `services::Wanted::advance`.
//! - No kube-proxy skips a Service before the agents of mode Beside serve it on every node, and
//!   these agents stay until kube-proxies have had time to serve it again: `services`,
//!   `Service::depends_on_beside`.
//! - No agent is removed while a Service of an object that needs it is still changed:
//!   `Snapshot::needs_agent`.
//! - The finalizer is removed last: `finalizers`.

mod accounts;
mod beside;
mod checks;
mod ingress;
mod kube_proxy;
mod pools;
mod rollout;
mod services;
mod sidecars;
mod snapshot;
mod status;

use k8s_openapi::jiff::Timestamp;

use self::pools::Pools;
use self::rollout::Rollout;
use self::snapshot::{Deletion, Snapshot};
use crate::action::Action;
use crate::cluster::{Cluster, Key};
use crate::waits::Waits;

pub use self::beside::can_have_agent;
pub use self::kube_proxy::{Refusal, accepted};
pub use self::sidecars::remedy;

#[cfg(test)]
mod tests;

/// The operator's startup configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The agents' image. Unused during cleanup.
    pub agent_image: String,
    /// Its image pull secrets, in kube-proxy's namespace.
    pub agent_pull_secrets: Vec<String>,
    /// The namespace of the operator and the webhook.
    pub namespace: String,
    /// Whether to restore everything, as if every object were being deleted with `deletionPolicy:
    /// Restore`.
    pub cleanup: bool,
}

/// The result of one planning round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// May be executed in any order; any of them may fail.
    pub actions: Vec<Action>,
    /// Notices to publish as Events.
    pub notices: Vec<Notice>,
    /// When to plan again even if nothing has changed.
    pub wake: Option<Timestamp>,
    /// The pending waits, to pass to the next plan.
    pub waits: Waits,
}

impl Plan {
    fn wake_at(&mut self, at: Timestamp) {
        self.wake = Some(self.wake.map_or(at, |before| before.min(at)));
    }
}

/// An Event to publish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The object that the Event refers to.
    pub about: About,
    /// Whether the Event is of type Warning.
    pub warning: bool,
    /// The Event's reason.
    pub reason: String,
    /// The Event's message.
    pub message: String,
}

/// The object that a notice refers to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    /// An IngressSourcePreserve.
    Object {
        /// Its name.
        name: String,
        /// Its UID.
        uid: String,
    },
    /// A Service.
    Service {
        /// Its namespace and name.
        key: Key,
        /// Its UID.
        uid: String,
    },
}

/// Computes the next actions, notices and statuses.
pub fn plan(cluster: &Cluster, settings: &Settings, waits: &Waits, now: Timestamp) -> Plan {
    let snapshot = Snapshot::new(cluster, settings, waits, now);
    let mut plan = Plan::default();
    let pools = Pools::new(&snapshot);
    let rollout = Rollout::plan(&snapshot, &pools, &mut plan);
    pools.plan(&snapshot, &mut plan);
    rollout.beside.plan(&snapshot, &pools, &mut plan);
    kube_proxy::plan(&snapshot, &pools, &mut plan);
    let services = services::plan(&snapshot, &rollout, &mut plan);
    sidecars::plan(&snapshot, &mut plan);
    finalizers(&snapshot, &pools, &rollout, &mut plan);
    status::plan(&snapshot, &pools, &rollout, &services, &mut plan);
    plan.waits = snapshot.clock.into_waits();
    plan
}

/// Adds the finalizer before anything is changed for an object, and removes it when nothing is left
/// to restore or mark as retained.
fn finalizers(snapshot: &Snapshot<'_>, pools: &Pools<'_>, rollout: &Rollout<'_>, plan: &mut Plan) {
    for object in &snapshot.objects {
        let held = match object.deletion {
            None if object.held => continue,
            None => true,
            Some(_) if !object.held => continue,
            Some(Deletion::Restore) => {
                let left = !object.touched.is_empty()
                    || rollout.on_the_way_back()
                    || (snapshot.nobody_needs_agents()
                        && (pools::anything_left(snapshot) || accounts::anything_left(snapshot)))
                    || sidecars::anything_left(snapshot, object);
                if left {
                    continue;
                }
                false
            }
            Some(Deletion::Retain) => {
                if !snapshot.is_retained(object) || !pools.are_retained(snapshot, object) {
                    continue;
                }
                false
            }
        };
        let metadata = &object.written.metadata;
        plan.actions.push(Action::Finalizer {
            object: object.name.to_owned(),
            identity: crate::observe::identity(metadata),
            held,
        });
    }
}
