//! What has to be read of a kube-proxy besides its DaemonSet: its pods, and each `ConfigMap` that it is configured by.

use std::collections::{BTreeMap, BTreeSet};

use isp_api::agent::runs_kube_proxy;
use isp_plan::cluster::{DaemonSet, Pod};
use isp_plan::{Cluster, Key, observe};
use k8s_openapi::api::core::v1::Pod as PodObject;
use kube::core::Selector;
use kube::runtime::watcher::Event;

use super::reading::{Reading, told};
use super::{News, pod_key};

/// Of each ConfigMap, by file: where kube-proxy's kubeconfig is.
pub(crate) type Configurations = BTreeMap<Key, BTreeMap<String, String>>;

/// Where to read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// Which pods are its own, as the API takes it.
    pub(crate) selector: String,
    /// Each `ConfigMap` that its container mounts, in its namespace.
    pub(crate) maps: BTreeSet<String>,
    /// Of the DaemonSet. kube-proxy reads its configuration when it starts, and it starts anew with a new template.
    pub(crate) generation: i64,
}

/// The kube-proxies there are: DaemonSets that run one and are not a pool's.
pub(super) fn sources(cluster: &Cluster) -> BTreeMap<Key, Source> {
    let sets = cluster.daemon_sets.iter().filter(|(_, set)| !observe::is_pool(set));
    sets.filter_map(|(key, set)| Some((key.clone(), source(set)?))).collect()
}

fn source(set: &DaemonSet) -> Option<Source> {
    let spec = &set.object.spec;
    // The API server has checked it: there is no other kind of selector.
    let selector = Selector::try_from(spec.selector.clone()).ok()?;
    let pod = spec.template.spec.as_ref()?;
    let container = pod.containers.iter().find(|container| runs_kube_proxy(container))?;
    let mounted: BTreeSet<&str> =
        container.volume_mounts.iter().flatten().map(|mount| mount.name.as_str()).collect();
    let volumes = pod.volumes.iter().flatten().filter(|volume| mounted.contains(volume.name.as_str()));
    Some(Source {
        selector: selector.to_string(),
        maps: volumes.filter_map(|volume| Some(volume.config_map.as_ref()?.name.clone())).collect(),
        generation: set.object.metadata.generation.unwrap_or_default(),
    })
}

/// Whether a pod is of that DaemonSet.
pub(super) fn is_of(set: &Key, key: &Key, pod: &Pod) -> bool {
    key.namespace == set.namespace && pod.daemon_set == set.name
}

/// A kube-proxy that is followed.
pub(super) struct Followed {
    pods: Reading<Key, Pod>,
    /// None until they have been read.
    pub(super) configurations: Option<Configurations>,
}

impl Default for Followed {
    fn default() -> Self {
        Self { pods: Reading::new(None), configurations: None }
    }
}

impl Followed {
    /// Its pods are to be read anew.
    pub(super) fn begin(&mut self) {
        self.pods = Reading::new(None);
    }

    pub(super) fn is_whole(&self) -> bool {
        self.pods.is_whole() && self.configurations.is_some()
    }

    pub(super) fn take_pods(
        &mut self,
        set: &Key,
        known: &mut BTreeMap<Key, Pod>,
        event: Event<PodObject>,
    ) -> News {
        let told = told(event, pod_key, |object| observe::pod(&object));
        self.pods.take_among(known, told, |key, pod| is_of(set, key, pod))
    }
}
