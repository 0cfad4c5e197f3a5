//! What has to be read of a kube-proxy besides its DaemonSet: its pods, and each `ConfigMap` that it is configured by.

use std::collections::{BTreeMap, BTreeSet};

use isp_api::agent::runs_kube_proxy;
use kube::core::Selector;

use super::is_pool;
use crate::cluster::{DaemonSet, Key};

/// Where to read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeProxySource {
    /// Which pods are its own, as the API takes it.
    pub selector: String,
    /// Each `ConfigMap` that its container mounts, in its namespace.
    pub maps: BTreeSet<String>,
    /// Of the DaemonSet. kube-proxy reads its configuration when it starts, and it starts anew with a new template.
    pub generation: i64,
}

/// The kube-proxies there are: DaemonSets that run one and are not a pool's.
pub fn kube_proxies(sets: &BTreeMap<Key, DaemonSet>) -> BTreeMap<Key, KubeProxySource> {
    let sets = sets.iter().filter(|(_, set)| !is_pool(set));
    sets.filter_map(|(key, set)| Some((key.clone(), source(set)?))).collect()
}

fn source(set: &DaemonSet) -> Option<KubeProxySource> {
    let spec = &set.object.spec;
    // The API server has checked it: there is no other kind of selector.
    let selector = Selector::try_from(spec.selector.clone()).ok()?;
    let pod = spec.template.spec.as_ref()?;
    let container = pod.containers.iter().find(|container| runs_kube_proxy(container))?;
    let mounted: BTreeSet<&str> =
        container.volume_mounts.iter().flatten().map(|mount| mount.name.as_str()).collect();
    let volumes = pod.volumes.iter().flatten().filter(|volume| mounted.contains(volume.name.as_str()));
    Some(KubeProxySource {
        selector: selector.to_string(),
        maps: volumes.filter_map(|volume| Some(volume.config_map.as_ref()?.name.clone())).collect(),
        generation: set.object.metadata.generation.unwrap_or_default(),
    })
}
