//! All order, all interlocks, all conflict rules.
//!
//! | file | decides |
//! |---|---|
//! | `snapshot` | which object has a say in what: the Services it may change, the nodes that are elsewhere for it |
//! | `ingress` | which nodes show an object's Services in full, so that the last way in is never closed |
//! | `checks` | step 1: what keeps an object from being begun |
//! | `kube_proxy` | which DaemonSet is the cluster's kube-proxy, and what keeps it off nodes with an agent |
//! | `accounts` | the agents' account and its rights |
//! | `pools` | the agents' DaemonSets |
//! | `rollout` | step 2: which node goes over to the agent, or back, and when |
//! | `services` | steps 3 to 5 and the way back: the label and the policy of each Service |
//! | `sidecars` | what sets Istio's interception mode on new pods, and how those that exist stand |
//! | `status` | what is said about all of it |
//!
//! The interlocks, each in one place
//! - nothing is changed for an object that is not held by its finalizer: `Object::may_begin`, `Object::held`
//! - no DaemonSet of agents is made before their account and its rights are there, and those go after the last agent: `accounts`, `Pools::plan`
//! - no node goes over before kube-proxy is kept off nodes with an agent, the DaemonSet of the revision is there, and the revision's images are
//!   on the node: `rollout`
//! - no node that is the last to serve a Service is handed over, and none hides it: `ingress`
//! - no Service gets the label, and none the policy, before every non-ingress node has acknowledged the object's generation; none
//!   without a ready endpoint on an ingress node: `services::advance`
//! - no agent is taken away while a Service of an object that needs it is still changed: `Snapshot::needs_agent`
//! - the finalizer goes last: `finish`

mod accounts;
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

pub use self::sidecars::remedy;

#[cfg(test)]
mod tests;

/// What the operator was told when it was started.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The image of the agents. Not looked at when everything is put back.
    pub agent_image: String,
    /// The Secrets by which it is pulled, in kube-proxy's namespace.
    pub agent_pull_secrets: Vec<String>,
    /// The namespace of the operator and of the webhook.
    pub namespace: String,
    /// Whether everything is to be put back, as if every object were being deleted with `deletionPolicy: Restore`.
    pub cleanup: bool,
}

/// What is to be done now, and what is to be said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// In any order; any may fail.
    pub actions: Vec<Action>,
    /// What happened, for Events.
    pub notices: Vec<Notice>,
    /// When to look again even if nothing has changed.
    pub wake: Option<Timestamp>,
    /// What is waited for, for the next plan.
    pub waits: Waits,
}

impl Plan {
    fn wake_at(&mut self, at: Timestamp) {
        self.wake = Some(self.wake.map_or(at, |before| before.min(at)));
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// To whom.
    pub about: About,
    /// Whether somebody should look at it.
    pub warning: bool,
    /// In a word.
    pub reason: String,
    /// In a sentence.
    pub message: String,
}

/// What a notice is about.
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
        /// Its name.
        key: Key,
        /// Its UID.
        uid: String,
    },
}

/// What is to be done next, and what is to be said.
pub fn plan(cluster: &Cluster, settings: &Settings, waits: &Waits, now: Timestamp) -> Plan {
    let snapshot = Snapshot::new(cluster, settings, waits, now);
    let mut plan = Plan::default();
    let pools = Pools::new(&snapshot);
    let rollout = Rollout::plan(&snapshot, &pools, &mut plan);
    pools.plan(&snapshot, &mut plan);
    kube_proxy::plan(&snapshot, &pools, &mut plan);
    let services = services::plan(&snapshot, &rollout, &mut plan);
    sidecars::plan(&snapshot, &mut plan);
    finalizers(&snapshot, &pools, &rollout, &mut plan);
    status::plan(&snapshot, &pools, &rollout, &services, &mut plan);
    plan.waits = snapshot.clock.into_waits();
    plan
}

/// Holds objects before anything is changed for them, and lets them go when nothing of it is left.
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
