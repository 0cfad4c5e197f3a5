//! What can be done: one kind of action for each kind of write. An action is complete in itself and can be repeated; the
//! request that carries it out says which state of the object it was decided on, and is refused when that has changed.

mod target;
mod write;

use std::fmt;

use isp_api::names::{AGENT_NAME, IMAGES_NAME};
use isp_api::preserve::{IngressSourcePreserveStatus, ServiceLabel};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::NodeSelectorTerm;
use serde_json::Value;

pub use self::target::{Resource, Target};
pub use self::write::{Request, Write};
use crate::cluster::{Identity, Key};
use crate::own::OwnKind;
use crate::record::{AffinityRecord, Failure, Handover, OriginalLabel, ServiceRecord};

#[cfg(test)]
mod tests;

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Holds an object until everything it changed is back, or lets it go.
    Finalizer {
        /// The object.
        object: String,
        /// Which state of it.
        identity: Identity,
        /// Whether it is held.
        held: bool,
    },
    /// Gives a Service exactly these fields of ours.
    ShapeService {
        /// The Service.
        service: Key,
        /// Which state of it.
        identity: Identity,
        /// The fields.
        shape: Box<Shape>,
        /// Why, in a word.
        step: ServiceStep,
    },
    /// Gives fields of a Service back to whom they were taken from.
    ReturnFields {
        /// The Service.
        service: Key,
        /// Which state of it.
        identity: Identity,
        /// To whom.
        owner: String,
        /// What.
        fields: Returned,
    },
    /// Gives a node exactly these fields of ours.
    ShapeNode {
        /// The node.
        node: String,
        /// Which state of it.
        identity: Identity,
        /// The fields.
        shape: NodeShape,
        /// Why, in a word.
        step: NodeStep,
    },
    /// Keeps the cluster's kube-proxy off nodes with an agent.
    KeepOff {
        /// Its DaemonSet.
        daemon_set: Key,
        /// Which state of it.
        identity: Identity,
        /// The terms that it gets.
        terms: Vec<NodeSelectorTerm>,
        /// What is written down.
        record: Box<AffinityRecord>,
    },
    /// Gives the terms of the cluster's kube-proxy back to whom they were taken from.
    ReturnTerms {
        /// Its DaemonSet.
        daemon_set: Key,
        /// Which state of it.
        identity: Identity,
        /// To whom.
        owner: String,
        /// The terms as they were.
        terms: Vec<NodeSelectorTerm>,
    },
    /// Gives up everything of ours on the cluster's kube-proxy.
    ReleaseKubeProxy {
        /// Its DaemonSet.
        daemon_set: Key,
        /// Which state of it.
        identity: Identity,
    },
    /// Creates or updates the DaemonSet of a pool.
    ApplyPool {
        /// The pool.
        pool: String,
        /// Its DaemonSet, whole.
        daemon_set: Box<DaemonSet>,
    },
    /// Deletes the DaemonSet of a pool.
    DeletePool {
        /// Its DaemonSet.
        daemon_set: Key,
        /// Which state of it.
        identity: Identity,
    },
    /// Deletes the report of an agent that is gone.
    Forget {
        /// The node.
        node: String,
        /// Which state of the report.
        identity: Identity,
    },
    /// Creates or updates an object that is the operator's as a whole.
    ApplyOwn {
        /// Of which kind.
        kind: OwnKind,
        /// Its name.
        key: Key,
        /// The object, whole.
        object: Box<Value>,
    },
    /// Deletes it.
    DeleteOwn {
        /// Of which kind.
        kind: OwnKind,
        /// Its name.
        key: Key,
        /// Which state of it.
        identity: Identity,
    },
    /// Says how things are.
    Status {
        /// The object.
        object: String,
        /// Its UID. The version is left open: a status is about the whole cluster, and the newest one stands.
        uid: String,
        /// What is said.
        status: Box<IngressSourcePreserveStatus>,
    },
}

/// The fields of a Service that are ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// The label.
    pub label: Option<ServiceLabel>,
    /// Whether `externalTrafficPolicy: Local` is.
    pub local: bool,
    /// What is written down.
    pub record: Option<ServiceRecord>,
}

/// Why a Service is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceStep {
    /// It gets the label.
    Label,
    /// It gets the policy.
    Localise,
    /// It loses the label, so that every node shows it while no ingress node has an endpoint.
    Open,
    /// It is written down that it loses the policy while no ingress node has an endpoint.
    FallBack,
    /// The policy is given up, on the way back.
    GiveUpPolicy,
    /// Everything else is given up, at the end of the way back.
    Release,
    /// It stays as it is, though its object goes.
    Retain,
}

/// What a Service gets back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Returned {
    /// Its policy, `Cluster`.
    Policy,
    /// The label's former value.
    Label(OriginalLabel),
    /// All that the operator changed, by its value: nothing tells any more which fields are the operator's.
    Everything {
        /// Whether the policy goes back to `Cluster`.
        policy: bool,
        /// The label, and the value that it had before, if any.
        label: Option<(String, Option<String>)>,
    },
}

/// The fields of a node that are ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeShape {
    /// The pool whose agent it gets.
    pub pool: Option<String>,
    /// The revision of that agent.
    pub revision: Option<String>,
    /// The revision whose images are pulled.
    pub images: Option<String>,
    /// Whether it is going over, or back.
    pub handover: Option<Handover>,
    /// Why the agent was taken away.
    pub failure: Option<Failure>,
}

/// Why a node is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeStep {
    /// The images of its next agent are pulled.
    PullImages,
    /// The images could not be pulled.
    GiveUpImages,
    /// It goes over to the agent, or to another revision of it.
    HandOver,
    /// It has gone over.
    HandedOver,
    /// It goes back to the cluster's kube-proxy.
    HandBack,
    /// It goes back, to the former revision or to the cluster's kube-proxy, because the agent missed its deadline.
    RollBack,
    /// Its agent has to be started anew, because another kube-proxy writes rules there.
    Suspect,
    /// Its agent is stopped, to be started anew.
    StopAgent,
    /// Its agent is started anew.
    StartAgent,
    /// It has gone back.
    HandedBack,
    /// Nothing of ours stays on it.
    Release,
}

impl Action {
    /// The name of the kind, as metrics and logs have it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Finalizer { held: true, .. } => "hold-object",
            Self::Finalizer { held: false, .. } => "let-object-go",
            Self::ShapeService { step, .. } => match step {
                ServiceStep::Label => "label-service",
                ServiceStep::Localise => "localise-service",
                ServiceStep::Open => "open-service",
                ServiceStep::FallBack => "fall-back-service",
                ServiceStep::GiveUpPolicy => "give-up-policy",
                ServiceStep::Release => "release-service",
                ServiceStep::Retain => "retain-service",
            },
            Self::ReturnFields { fields: Returned::Policy, .. } => "return-policy",
            Self::ReturnFields { fields: Returned::Label(_), .. } => "return-label",
            Self::ReturnFields { fields: Returned::Everything { .. }, .. } => "undo-service",
            Self::ShapeNode { step, .. } => match step {
                NodeStep::PullImages => "pull-images",
                NodeStep::GiveUpImages => "give-up-images",
                NodeStep::HandOver => "hand-over-node",
                NodeStep::HandedOver => "handed-over-node",
                NodeStep::HandBack => "hand-back-node",
                NodeStep::RollBack => "roll-back-node",
                NodeStep::Suspect => "suspect-node",
                NodeStep::StopAgent => "stop-agent",
                NodeStep::StartAgent => "start-agent",
                NodeStep::HandedBack => "handed-back-node",
                NodeStep::Release => "release-node",
            },
            Self::KeepOff { .. } => "keep-kube-proxy-off",
            Self::ReturnTerms { .. } => "return-kube-proxy-affinity",
            Self::ReleaseKubeProxy { .. } => "release-kube-proxy",
            Self::ApplyPool { daemon_set, .. } => {
                if is_images(daemon_set.metadata.name.as_deref()) {
                    "apply-images"
                } else {
                    "apply-pool"
                }
            }
            Self::DeletePool { daemon_set, .. } => {
                if is_images(Some(&daemon_set.name)) {
                    "delete-images"
                } else {
                    "delete-pool"
                }
            }
            Self::Forget { .. } => "forget-node",
            Self::ApplyOwn { kind, .. } => kind.applying(),
            Self::DeleteOwn { kind, .. } => kind.deleting(),
            Self::Status { .. } => "write-status",
        }
    }
}

/// What an action is done to, without the digest at the end of the name of a DaemonSet that the operator makes.
pub fn without_revision(target: &str) -> &str {
    let is_digest = |text: &str| text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match target.rsplit_once('-') {
        Some((name, digest)) if name.contains(AGENT_NAME) && is_digest(digest) => name,
        _ => target,
    }
}

/// Whether a DaemonSet of this name pulls images.
fn is_images(name: Option<&str>) -> bool {
    name.is_some_and(|name| name.starts_with(IMAGES_NAME))
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind(), self.target())
    }
}
