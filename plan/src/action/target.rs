//! The object that an action writes to.

use std::fmt;

use isp_api::{IngressSourceNode, IngressSourcePreserve};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::core::ApiResource;

use super::Action;
use crate::cluster::Key;
use crate::own::OwnKind;

/// A kind of object that the operator writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// Services.
    Service,
    /// Nodes.
    Node,
    /// DaemonSets.
    DaemonSet,
    /// IngressSourcePreserves.
    Preserve,
    /// The status of IngressSourcePreserves.
    PreserveStatus,
    /// IngressSourceNodes.
    NodeReport,
    /// An object that the operator manages entirely.
    Own(OwnKind),
}

impl Resource {
    /// Its API resource.
    pub fn api(self) -> ApiResource {
        match self {
            Self::Service => ApiResource::erase::<Service>(&()),
            Self::Node => ApiResource::erase::<Node>(&()),
            Self::DaemonSet => ApiResource::erase::<DaemonSet>(&()),
            Self::Preserve | Self::PreserveStatus => ApiResource::erase::<IngressSourcePreserve>(&()),
            Self::NodeReport => ApiResource::erase::<IngressSourceNode>(&()),
            Self::Own(kind) => kind.resource(),
        }
    }
}

/// An object, by kind and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its kind.
    pub resource: Resource,
    /// Its name; the namespace is empty for cluster-scoped objects.
    pub key: Key,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, Key { namespace, name }) = (self.resource.api().kind.to_lowercase(), &self.key);
        if namespace.is_empty() { write!(f, "{kind}/{name}") } else { write!(f, "{kind}/{namespace}/{name}") }
    }
}

impl Action {
    /// The object that the action writes to.
    pub fn target(&self) -> Target {
        let (resource, key) = match self {
            Self::Finalizer { object, .. } => (Resource::Preserve, cluster_wide(object)),
            Self::Status { object, .. } => (Resource::PreserveStatus, cluster_wide(object)),
            Self::ShapeService { service, .. } | Self::ReturnFields { service, .. } => {
                (Resource::Service, service.clone())
            }
            Self::ShapeNode { node, .. } => (Resource::Node, cluster_wide(node)),
            Self::KeepOff { daemon_set, .. }
            | Self::ReturnTerms { daemon_set, .. }
            | Self::ReleaseKubeProxy { daemon_set, .. }
            | Self::DeletePool { daemon_set, .. } => (Resource::DaemonSet, daemon_set.clone()),
            Self::ApplyPool { daemon_set, .. } => {
                (Resource::DaemonSet, crate::observe::key(&daemon_set.metadata))
            }
            Self::Forget { report, .. } => (Resource::NodeReport, cluster_wide(report)),
            Self::ApplyOwn { kind, key, .. } | Self::DeleteOwn { kind, key, .. } => {
                (Resource::Own(*kind), key.clone())
            }
        };
        Target { resource, key }
    }
}

fn cluster_wide(name: &str) -> Key {
    Key::new("", name)
}
