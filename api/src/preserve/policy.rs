//! The choices an object makes, each from a closed list. A choice is listed once it works.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the nodes outside `ingressNodes` may see of a preserved Service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Elsewhere {
    /// The external addresses are hidden, the rest stays.
    #[default]
    ClusterOnly,
    /// The Service does not exist there.
    Hidden,
}

/// What happens when no ingress node has an endpoint of a Service any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum WhenNoIngressEndpoint {
    /// Keep `externalTrafficPolicy: Local`: down, but never a wrong address.
    #[default]
    KeepLocal,
    /// Go back to `Cluster` meanwhile: up, but the address is lost.
    FallBack,
}

/// What happens when another manager owns a field that must change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ConflictPolicy {
    /// Write nothing and say who owns it.
    #[default]
    Report,
    /// Take the field and remember what was there.
    Force,
}

/// What happens to the changes when the object is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// Put everything back as it was.
    #[default]
    Restore,
    /// Leave everything as it is.
    Retain,
}
