//! The cluster's kube-proxy: which DaemonSet it is, which other objects have to be read, and where
//! its configuration is.

use std::collections::{BTreeMap, BTreeSet};

use isp_api::preserve::KubeProxyRef;
use k8s_openapi::api::core::v1::{Container, PodSpec, Volume};
use kube::core::Selector;

use super::mounts::holding;
use crate::cluster::{Cluster, DaemonSet, Key};

/// The namespace searched for a kube-proxy that no object names. In other namespaces, less
/// privileged users may run DaemonSets that look like one.
pub(crate) const HOME: &str = "kube-system";

/// What has to be read for a kube-proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeProxySource {
    /// The label selector of its pods, in API syntax.
    pub selector: String,
    /// The name of each ConfigMap that its container mounts, in its namespace.
    pub maps: BTreeSet<String>,
    /// Generation of the DaemonSet. kube-proxy reads its configuration at startup, and a new
    /// template restarts it.
    pub generation: i64,
}

/// The cluster's kube-proxies: the one found by default, those that objects name, and those that
/// were changed for an object. Other DaemonSets that run kube-proxy are ignored.
pub fn kube_proxies(cluster: &Cluster) -> BTreeMap<Key, KubeProxySource> {
    let found = recognised(cluster).into_iter();
    found.filter_map(|(key, set)| Some((key.clone(), source(set)?))).collect()
}

/// The same, as DaemonSets.
pub(crate) fn recognised(cluster: &Cluster) -> BTreeMap<&Key, &DaemonSet> {
    let sets = &cluster.daemon_sets;
    let named = cluster.objects.values().filter_map(|object| object.spec.kube_proxy.clone());
    let changed = cluster.objects.values().filter_map(|object| {
        let known = object.status.as_ref()?.kube_proxy.as_ref()?;
        Some(KubeProxyRef { namespace: known.namespace.clone(), daemon_set: known.daemon_set.clone() })
    });
    let references = named.chain(changed).map(Some).chain([None]);
    let mut found: BTreeMap<&Key, &DaemonSet> =
        references.filter_map(|reference| kube_proxy(sets, reference.as_ref()).ok()).collect();
    found.extend(sets.iter().filter(|(key, set)| key.namespace == HOME && !set.made && set.record.is_some()));
    found
}

/// The DaemonSets created by the operator, in `kube-system` or the namespace of a kube-proxy.
/// Only administrators may create DaemonSets there, so they are not forged.
pub fn made(cluster: &Cluster) -> impl Iterator<Item = (&Key, &DaemonSet)> {
    let homes: BTreeSet<&str> =
        recognised(cluster).into_keys().map(|key| key.namespace.as_str()).chain([HOME]).collect();
    cluster.daemon_sets.iter().filter(move |(key, set)| set.made && homes.contains(key.namespace.as_str()))
}

/// The cluster's kube-proxies that were changed.
pub fn changed(cluster: &Cluster) -> impl Iterator<Item = &Key> {
    recognised(cluster).into_iter().filter(|(_, set)| set.record.is_some()).map(|(key, _)| key)
}

fn source(set: &DaemonSet) -> Option<KubeProxySource> {
    let spec = &set.object.spec;
    // Always valid: the API server has checked it.
    let selector = Selector::try_from(spec.selector.clone()).ok()?;
    let pod = spec.template.spec.as_ref()?;
    let container = pod.containers.iter().find(|container| runs_kube_proxy(container))?;
    let mounted: BTreeSet<&str> =
        container.volume_mounts.iter().flatten().map(|mount| mount.name.as_str()).collect();
    let volumes = pod.volumes.iter().flatten().filter(|volume| mounted.contains(volume.name.as_str()));
    Some(KubeProxySource {
        selector: selector.to_string(),
        maps: volumes.flat_map(config_maps).collect(),
        generation: set.object.metadata.generation.unwrap_or_default(),
    })
}

fn config_maps(volume: &Volume) -> impl Iterator<Item = String> {
    let projected = volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
    let parts = projected.filter_map(|source| Some(source.config_map.as_ref()?.name.clone()));
    volume.config_map.iter().map(|map| map.name.clone()).chain(parts)
}

/// Why the cluster's kube-proxy cannot be determined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoKubeProxy {
    /// The named DaemonSet does not exist or does not run kube-proxy.
    NotThere(Key),
    /// No DaemonSet runs kube-proxy.
    NotFound,
    /// Several DaemonSets run kube-proxy.
    Ambiguous(Vec<Key>),
}

/// The cluster's kube-proxy: the named DaemonSet, or else the one in `kube-system` that has
/// kubeadm's name, is the only one with its label, or is the only candidate.
pub fn kube_proxy<'a>(
    sets: &'a BTreeMap<Key, DaemonSet>,
    named: Option<&KubeProxyRef>,
) -> Result<(&'a Key, &'a DaemonSet), NoKubeProxy> {
    if let Some(KubeProxyRef { namespace, daemon_set }) = named {
        let key = Key::new(namespace.clone(), daemon_set.clone());
        let found = sets.get_key_value(&key).filter(|(_, set)| !set.made);
        return found.ok_or(NoKubeProxy::NotThere(key));
    }
    let candidates: Vec<_> = sets.iter().filter(|(key, set)| key.namespace == HOME && !set.made).collect();
    let kubeadm = |(key, _): &&(&Key, &DaemonSet)| key.name == "kube-proxy";
    let labelled = |(_, set): &&(&'a Key, &'a DaemonSet)| {
        let labels = set.object.metadata.labels.as_ref();
        labels.and_then(|labels| labels.get("k8s-app")).is_some_and(|app| app == "kube-proxy")
    };
    if let Some(found) = candidates.iter().find(kubeadm) {
        return Ok(*found);
    }
    let mut with_label = candidates.iter().filter(labelled);
    match (with_label.next(), with_label.next(), candidates.as_slice()) {
        (Some(found), None, _) | (None, _, [found]) => Ok(*found),
        (_, _, []) => Err(NoKubeProxy::NotFound),
        _ => Err(NoKubeProxy::Ambiguous(candidates.iter().map(|(key, _)| (*key).clone()).collect())),
    }
}

/// The value of a container's flag, after `=` or as the next word. The last occurrence wins, as in
/// kube-proxy.
pub fn flag(container: &Container, name: &str) -> Option<String> {
    let words: Vec<&String> = container.command.iter().chain(&container.args).flatten().collect();
    words.iter().enumerate().rev().find_map(|(place, word)| {
        let rest = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?.strip_prefix(name)?;
        match rest.strip_prefix('=') {
            Some(value) => Some(value.to_owned()),
            None if rest.is_empty() => words.get(place + 1).map(|value| (*value).clone()),
            None => None,
        }
    })
}

/// The ConfigMap and the file in it that a container finds at a path.
pub fn mounted_file<'a>(
    pod: &'a PodSpec,
    container: &'a Container,
    path: &'a str,
) -> Option<(&'a str, &'a str)> {
    holding(pod, container, path)?.config_map()
}

/// Whether a container runs kube-proxy, by its name or its command.
pub fn runs_kube_proxy(container: &Container) -> bool {
    let words = container.command.iter().chain(&container.args).flatten();
    container.name == "kube-proxy"
        || words.into_iter().any(|word| word.rsplit('/').next() == Some("kube-proxy"))
}
