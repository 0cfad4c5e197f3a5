//! The possible writes, one action per kind. An action is self-contained and idempotent. Most
//! requests carry the UID and resource version that the decision was based on, and are rejected if
//! those have changed.

mod target;
mod write;

use std::fmt;

use isp_api::names::{AGENT_NAME, BESIDE_NAME, IMAGES_NAME};
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

/// One write to the API server.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Adds the finalizer to an object, or removes it.
    Finalizer {
        /// The object.
        object: String,
        /// Precondition of the write.
        identity: Identity,
        /// Whether the object should have the finalizer.
        held: bool,
    },
    /// Applies exactly these operator-owned fields to a Service.
    ShapeService {
        /// The Service.
        service: Key,
        /// Precondition of the write.
        identity: Identity,
        /// The fields.
        shape: Box<Shape>,
        /// The reason for the change.
        step: ServiceStep,
    },
    /// Returns fields of a Service to their previous field manager.
    ReturnFields {
        /// The Service.
        service: Key,
        /// Precondition of the write.
        identity: Identity,
        /// The field manager that gets them.
        owner: String,
        /// The fields.
        fields: Returned,
    },
    /// Applies exactly these operator-owned fields to a node.
    ShapeNode {
        /// The node.
        node: String,
        /// Precondition of the write.
        identity: Identity,
        /// The fields.
        shape: NodeShape,
        /// The reason for the change.
        step: NodeStep,
    },
    /// Extends the node affinity of the cluster's kube-proxy to exclude nodes with an agent.
    KeepOff {
        /// Its DaemonSet.
        daemon_set: Key,
        /// Precondition of the write.
        identity: Identity,
        /// The new node affinity terms.
        terms: Vec<NodeSelectorTerm>,
        /// The record annotation.
        record: Box<AffinityRecord>,
    },
    /// Returns kube-proxy's node affinity terms to their previous field manager.
    ReturnTerms {
        /// Its DaemonSet.
        daemon_set: Key,
        /// Precondition of the write.
        identity: Identity,
        /// The field manager that gets them.
        owner: String,
        /// The original terms.
        terms: Vec<NodeSelectorTerm>,
    },
    /// Releases all operator-owned fields of the cluster's kube-proxy.
    ReleaseKubeProxy {
        /// Its DaemonSet.
        daemon_set: Key,
        /// Precondition of the write.
        identity: Identity,
    },
    /// Creates or updates a DaemonSet of a pool, or that of mode Beside.
    ApplyPool {
        /// The pool. Empty for mode Beside.
        pool: String,
        /// The full DaemonSet.
        daemon_set: Box<DaemonSet>,
    },
    /// Deletes a DaemonSet of a pool, or that of mode Beside.
    DeletePool {
        /// Its DaemonSet.
        daemon_set: Key,
        /// Precondition of the write.
        identity: Identity,
    },
    /// Deletes the report of an agent that no longer exists.
    Forget {
        /// The name of the report.
        report: String,
        /// Precondition of the write.
        identity: Identity,
    },
    /// Creates or updates an object that the operator manages entirely.
    ApplyOwn {
        /// Its kind.
        kind: OwnKind,
        /// Its name.
        key: Key,
        /// The full object.
        object: Box<Value>,
    },
    /// Deletes an object that the operator manages entirely.
    DeleteOwn {
        /// Its kind.
        kind: OwnKind,
        /// Its name.
        key: Key,
        /// Precondition of the write.
        identity: Identity,
    },
    /// Writes the status of an object.
    Status {
        /// The object.
        object: String,
        /// Its UID. There is no resource version precondition: a status describes the whole
        /// cluster, and the last one wins.
        uid: String,
        /// The new status.
        status: Box<IngressSourcePreserveStatus>,
    },
}

/// The operator-owned fields of a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// The label, if set.
    pub label: Option<ServiceLabel>,
    /// Whether the label that makes kube-proxies skip the Service is set.
    pub taken_over: bool,
    /// Whether `externalTrafficPolicy: Local` is set.
    pub local: bool,
    /// The record annotation.
    pub record: Option<ServiceRecord>,
}

/// The reason for changing a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceStep {
    /// Add the label.
    Label,
    /// Let kube-proxies skip the Service, which the agents of mode Beside serve on every node.
    TakeOver,
    /// Record that kube-proxies serve the Service again.
    GivenBack,
    /// Set the policy to Local.
    Localise,
    /// Remove the label, so that every node shows the Service while no ingress node has an
    /// endpoint.
    Open,
    /// Record the fallback and remove the label, before the policy is given up.
    FallBack,
    /// Release the policy, when falling back or restoring.
    GiveUpPolicy,
    /// Release all remaining fields, at the end of restoring.
    Release,
    /// Mark as retained although its object is being deleted.
    Retain,
}

/// Fields that a Service gets back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Returned {
    /// The policy, `Cluster`.
    Policy,
    /// The previous value of the label.
    Label(OriginalLabel),
    /// The Service itself, to kube-proxies: removes the label that makes them skip it.
    ToKubeProxy,
    /// All changes, reverted by value because managedFields no longer tell which fields are ours.
    Everything {
        /// Whether to set the policy to `Cluster`.
        policy: bool,
        /// The label key, and its previous value if any.
        label: Option<(String, Option<String>)>,
    },
}

/// The operator-owned fields of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeShape {
    /// The pool label.
    pub pool: Option<String>,
    /// The revision label of the agent.
    pub revision: Option<String>,
    /// The label of the revision whose images are pulled.
    pub images: Option<String>,
    /// The handover or hand-back in progress.
    pub handover: Option<Handover>,
    /// The recorded failure.
    pub failure: Option<Failure>,
}

/// The reason for changing a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeStep {
    /// Pull the images of the next agent.
    PullImages,
    /// Record that the images could not be pulled.
    GiveUpImages,
    /// Hand the node over to the agent, or to another revision of it.
    HandOver,
    /// The handover is complete.
    HandedOver,
    /// Hand the node back to the cluster's kube-proxy.
    HandBack,
    /// The agent missed its deadline: roll back to the previous revision or the cluster's
    /// kube-proxy.
    RollBack,
    /// Mark the agent for a restart, because another kube-proxy writes rules there.
    Suspect,
    /// Stop the agent in order to restart it.
    StopAgent,
    /// Start the stopped agent.
    StartAgent,
    /// The hand-back is complete.
    HandedBack,
    /// Release all operator-owned fields.
    Release,
}

impl Action {
    /// The name of the action in metrics and logs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Finalizer { held: true, .. } => "hold-object",
            Self::Finalizer { held: false, .. } => "let-object-go",
            Self::ShapeService { step, .. } => match step {
                ServiceStep::Label => "label-service",
                ServiceStep::TakeOver => "take-over-service",
                ServiceStep::GivenBack => "given-back-service",
                ServiceStep::Localise => "localise-service",
                ServiceStep::Open => "open-service",
                ServiceStep::FallBack => "fall-back-service",
                ServiceStep::GiveUpPolicy => "give-up-policy",
                ServiceStep::Release => "release-service",
                ServiceStep::Retain => "retain-service",
            },
            Self::ReturnFields { fields: Returned::Policy, .. } => "return-policy",
            Self::ReturnFields { fields: Returned::Label(_), .. } => "return-label",
            Self::ReturnFields { fields: Returned::ToKubeProxy, .. } => "give-back-service",
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
                } else if daemon_set.metadata.name.as_deref() == Some(BESIDE_NAME) {
                    "apply-beside"
                } else {
                    "apply-pool"
                }
            }
            Self::DeletePool { daemon_set, .. } => {
                if is_images(Some(&daemon_set.name)) {
                    "delete-images"
                } else if daemon_set.name == BESIDE_NAME {
                    "delete-beside"
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

/// The target's name without the revision digest of the operator's DaemonSets.
pub fn without_revision(target: &str) -> &str {
    let is_digest = |text: &str| text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match target.rsplit_once('-') {
        Some((name, digest)) if name.contains(AGENT_NAME) && is_digest(digest) => name,
        _ => target,
    }
}

/// Whether this is the name of a DaemonSet that prepulls images.
fn is_images(name: Option<&str>) -> bool {
    name.is_some_and(|name| name.starts_with(IMAGES_NAME))
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind(), self.target())
    }
}
