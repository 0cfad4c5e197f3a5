//! The facts about a kube-proxy besides its DaemonSet: its pods, and the `ConfigMap`s that
//! configure it.

use std::collections::BTreeMap;

use isp_plan::cluster::Pod;
use isp_plan::{Key, observe};
use k8s_openapi::api::core::v1::Pod as PodObject;
use kube::runtime::watcher::Event;

use super::reading::Reading;
use super::{News, pod_key};

/// For each ConfigMap, by file name: the path of kube-proxy's kubeconfig.
pub(crate) type Configurations = BTreeMap<Key, BTreeMap<String, String>>;

/// A watched kube-proxy.
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
    /// Marks the pods as not listed, for a new watch.
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
        self.pods.take_among(
            known,
            event,
            pod_key,
            |object| observe::pod(&object),
            |_, pod| pod.daemon_set == *set,
        )
    }
}
