//! The pod whose rules are read.

use std::net::IpAddr;

use isp_plan::Key;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;

use super::RulesError;
use crate::connection::Connection;
use crate::error::CommandError;
use crate::read;

/// A running pod with a network of its own.
pub(crate) struct Target {
    pub(crate) key: Key,
    pub(crate) pod: Pod,
    pub(crate) node: String,
    pub(crate) addresses: Vec<IpAddr>,
}

impl Target {
    pub(super) async fn find(connection: &Connection, key: &Key) -> Result<Self, CommandError> {
        let pods: Api<Pod> = Api::namespaced(connection.client.clone(), &key.namespace);
        let pod = pods.get_opt(&key.name).await;
        let pod = pod.map_err(|error| connection.problem("get", &read::resource::<Pod>(), error))?;
        let pod = pod.ok_or_else(|| RulesError::NoPod(key.clone()))?;
        Ok(Self::of(key, pod)?)
    }

    pub(crate) fn of(key: &Key, pod: Pod) -> Result<Self, RulesError> {
        let (spec, status) = (pod.spec.as_ref(), pod.status.as_ref());
        if spec.and_then(|spec| spec.host_network) == Some(true) {
            return Err(RulesError::HostNetwork(key.clone()));
        }
        let phase = status.and_then(|status| status.phase.as_deref()).unwrap_or("Unknown");
        let ips = status.iter().flat_map(|status| status.pod_ips.iter().flatten());
        let addresses: Vec<IpAddr> = ips.filter_map(|ip| ip.ip.parse().ok()).collect();
        let node = spec.and_then(|spec| spec.node_name.clone());
        match node {
            // Init containers may have written rules already.
            Some(node) if matches!(phase, "Running" | "Pending") && !addresses.is_empty() => {
                Ok(Self { key: key.clone(), node, addresses, pod })
            }
            _ => Err(RulesError::NotRunning { pod: key.clone(), phase: phase.to_owned() }),
        }
    }
}
