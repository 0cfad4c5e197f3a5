//! The location of the cluster's own kube-proxy, for clusters where it has an unusual name.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::rules;

/// The DaemonSet of the cluster's kube-proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeProxyRef {
    /// The namespace of the DaemonSet, usually `kube-system`.
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = rules::dns_label())]
    pub namespace: String,

    /// The name of the DaemonSet, usually `kube-proxy`.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = rules::dns_subdomain())]
    pub daemon_set: String,
}
