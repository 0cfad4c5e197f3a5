//! The cluster's kube-proxy, for comparison: mode Beside must not touch it.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Api;
use kube::api::{ListParams, ObjectMeta};

use crate::{Lab, LabError};

const NAMESPACE: &str = "kube-system";
const NAME: &str = "kube-proxy";

/// Everything that a change of kube-proxy would alter, by object. An object that was changed and
/// changed back differs in its generation, version or restarts.
#[derive(Debug, PartialEq)]
pub struct KubeProxyState(BTreeMap<String, String>);

impl KubeProxyState {
    /// Reads its DaemonSet, ConfigMap and pods.
    pub async fn look(lab: &Lab) -> Result<Self, LabError> {
        let sets: Api<DaemonSet> = Api::namespaced(lab.client(), NAMESPACE);
        let maps: Api<ConfigMap> = Api::namespaced(lab.client(), NAMESPACE);
        let pods: Api<Pod> = Api::namespaced(lab.client(), NAMESPACE);
        let (set, map) = (sets.get(NAME).await?, maps.get(NAME).await?);
        let pods = pods.list(&ListParams::default().labels("k8s-app=kube-proxy")).await?;
        let mut found = BTreeMap::new();
        let labels = format!("{:?} {:?}", set.metadata.labels, set.metadata.annotations);
        let generation = set.metadata.generation.unwrap_or_default();
        found.insert("the DaemonSet".to_owned(), format!("{} {generation} {labels}", uid(&set.metadata)));
        let version = map.metadata.resource_version.clone().unwrap_or_default();
        found.insert("the ConfigMap".to_owned(), format!("{} {version}", uid(&map.metadata)));
        for pod in pods {
            let statuses = pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
            let restarts: i32 = statuses.iter().map(|status| status.restart_count).sum();
            let name = pod.metadata.name.clone().unwrap_or_default();
            found.insert(format!("the pod {name}"), format!("{} {restarts} restarts", uid(&pod.metadata)));
        }
        Ok(Self(found))
    }

    /// The objects that differ.
    pub fn changes(&self, later: &Self) -> Vec<String> {
        let names = self.0.keys().chain(later.0.keys().filter(|name| !self.0.contains_key(*name)));
        names.filter(|name| self.0.get(*name) != later.0.get(*name)).cloned().collect()
    }
}

fn uid(metadata: &ObjectMeta) -> &str {
    metadata.uid.as_deref().unwrap_or_default()
}

#[test]
fn a_change_names_the_objects_that_differ_are_new_or_are_gone() {
    let of = |pairs: &[(&str, &str)]| {
        KubeProxyState(pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect())
    };
    let before = of(&[("the DaemonSet", "1"), ("the pod a", "u 0"), ("the pod b", "u 0")]);
    assert_eq!(before.changes(&before), [""; 0]);
    let after = of(&[("the DaemonSet", "2"), ("the pod a", "u 1"), ("the pod c", "u 0")]);
    assert_eq!(before.changes(&after), ["the DaemonSet", "the pod a", "the pod b", "the pod c"]);
}
