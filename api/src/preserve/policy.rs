//! The policies of an object, each with a closed set of values. A value is listed once it is
//! implemented.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What kube-proxy on non-ingress nodes sees of a preserved Service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Elsewhere {
    /// Everything except the external IPs.
    #[default]
    ClusterOnly,
    /// Nothing.
    Hidden,
}

/// What happens when a Service has no endpoint left on the ingress nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum WhenNoIngressEndpoint {
    /// Keep `externalTrafficPolicy: Local`: traffic may be dropped, but the source IP is never
    /// wrong.
    #[default]
    KeepLocal,
    /// Return to `Cluster` temporarily: traffic is served, but the source IP is lost.
    FallBack,
}

/// What happens when another manager owns a field that must change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ConflictPolicy {
    /// Write nothing, and report the owner.
    #[default]
    Report,
    /// Take the field, and remember its value.
    Force,
}

/// What happens to the changes when the object is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// Restore everything.
    #[default]
    Restore,
    /// Restore nothing.
    Retain,
}
