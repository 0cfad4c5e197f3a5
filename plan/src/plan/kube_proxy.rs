//! Which DaemonSet is the cluster's kube-proxy, how it is configured, and what keeps it off nodes with an agent.

use isp_api::agent::mounts::{Mounted, holding};
use isp_api::agent::{NoAgent, runs_kube_proxy};
use isp_api::names::AGENT_POOL_LABEL;
use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm, PodSpec};
use thiserror::Error;

use super::Plan;
use super::pools::Pools;
use super::scene::Scene;
use crate::action::Action;
use crate::cluster::{Cluster, DaemonSet, Key};
use crate::observe::{NoKubeProxy, flag, is_pool, mounted_file};
use crate::ownership::{Declared, affinity_declared, foreign, ours, undeclared_owner};
use crate::record::AffinityRecord;

/// Why no agent can be made from the cluster's kube-proxy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum Problem {
    #[error(
        "no DaemonSet runs kube-proxy here, so its pods cannot be moved behind the agent: name it in spec.kubeProxy; where \
         kube-proxy is no DaemonSet (systemd, static pod, k3s, or another proxy), mode Filter does not work, and nothing has been \
         touched"
    )]
    NotFound,
    #[error("spec.kubeProxy: DaemonSet {0} does not exist or does not run kube-proxy")]
    NotThere(Key),
    #[error("several DaemonSets run kube-proxy ({0}): name the right one in spec.kubeProxy")]
    Ambiguous(String),
    #[error("DaemonSet {0}: {1}")]
    NoKubeconfig(Key, Box<NoKubeconfig>),
    #[error("DaemonSet {0}: {1}")]
    Unusable(Key, Box<NoAgent>),
}

/// Why it cannot be told by which kubeconfig kube-proxy finds the API server.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum NoKubeconfig {
    #[error(
        "container {container} is started with neither --config nor --kubeconfig, so kube-proxy takes the API server's address from its pod's \
         environment and cannot be led to the agent: run it with a kubeconfig from a ConfigMap that names the API server by an address that \
         works without kube-proxy"
    )]
    InCluster { container: String },
    #[error(
        "container {container} is started with --master={server}, which kube-proxy takes before its kubeconfig, so it cannot be led to the \
         agent: name the server in the kubeconfig"
    )]
    Master { container: String, server: String },
    #[error(
        "container {container} reads its configuration {path} from {from}, which the operator cannot read: put it into a ConfigMap that is \
         mounted there"
    )]
    NotFromConfigMap { container: String, path: String, from: String },
    #[error(
        "container {container} reads its configuration {path} from the ConfigMap {map}, which has no file {file} there with a \
         clientConnection.kubeconfig: name one"
    )]
    NotNamed { container: String, path: String, map: Key, file: String },
    #[error("no container runs kube-proxy: name the right DaemonSet in spec.kubeProxy")]
    NoContainer,
}

impl Problem {
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::NotFound | Self::NotThere(_) => "KubeProxyNotFound",
            Self::Ambiguous(_) => "KubeProxyAmbiguous",
            Self::NoKubeconfig(..) | Self::Unusable(..) => "KubeProxyUnusable",
        }
    }
}

impl From<NoKubeProxy> for Problem {
    fn from(none: NoKubeProxy) -> Self {
        match none {
            NoKubeProxy::NotThere(key) => Self::NotThere(key),
            NoKubeProxy::NotFound => Self::NotFound,
            NoKubeProxy::Ambiguous(keys) => {
                let all: Vec<_> = keys.iter().map(ToString::to_string).collect();
                Self::Ambiguous(all.join(", "))
            }
        }
    }
}

/// Where kube-proxy reads its kubeconfig.
pub(super) fn kubeconfig(cluster: &Cluster, key: &Key, set: &DaemonSet) -> Result<String, Problem> {
    let pod = set.object.spec.template.spec.as_ref();
    let found = pod.ok_or(NoKubeconfig::NoContainer).and_then(|pod| configured(cluster, key, pod));
    found.map_err(|why| Problem::NoKubeconfig(key.clone(), Box::new(why)))
}

/// Flags about the connection count only without --config, but for --master, which always does.
fn configured(cluster: &Cluster, key: &Key, pod: &PodSpec) -> Result<String, NoKubeconfig> {
    let found = pod.containers.iter().find(|container| runs_kube_proxy(container));
    let found = found.ok_or(NoKubeconfig::NoContainer)?;
    let given = |name: &str| flag(found, name).filter(|value| !value.is_empty());
    let container = found.name.clone();
    if let Some(server) = given("master") {
        return Err(NoKubeconfig::Master { container, server });
    }
    let Some(path) = given("config") else {
        return given("kubeconfig").ok_or(NoKubeconfig::InCluster { container });
    };
    let Some((map, file)) = mounted_file(pod, found, &path) else {
        let volume = |held: Mounted<'_>| format!("the {} volume {}", held.kind(), held.volume.name);
        let from = holding(pod, found, &path).map_or_else(|| "no volume".to_owned(), volume);
        return Err(NoKubeconfig::NotFromConfigMap { container, path, from });
    };
    let map = Key::new(key.namespace.clone(), map.to_owned());
    let named = cluster.configurations.get(&map).and_then(|files| files.get(file)).cloned();
    named.ok_or_else(|| NoKubeconfig::NotNamed { container, path: path.clone(), map, file: file.to_owned() })
}

fn requirement() -> NodeSelectorRequirement {
    NodeSelectorRequirement {
        key: AGENT_POOL_LABEL.to_owned(),
        operator: "DoesNotExist".to_owned(),
        values: None,
    }
}

fn terms(set: &DaemonSet) -> Vec<NodeSelectorTerm> {
    let pod = set.object.spec.template.spec.as_ref();
    let affinity =
        pod.and_then(|pod| pod.affinity.as_ref()).and_then(|affinity| affinity.node_affinity.as_ref());
    let required =
        affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    required.map(|required| required.node_selector_terms.clone()).unwrap_or_default()
}

fn keeps_off(term: &NodeSelectorTerm) -> bool {
    term.match_expressions.iter().flatten().any(|present| *present == requirement())
}

/// Whether kube-proxy stays off nodes with an agent. The terms are alternatives, so each of them must say so.
pub(super) fn is_kept_off(set: &DaemonSet) -> bool {
    let terms = terms(set);
    !terms.is_empty() && terms.iter().all(keeps_off)
}

/// The terms with our requirement in each. There is one at least.
fn kept_off(terms: &[NodeSelectorTerm]) -> Vec<NodeSelectorTerm> {
    if terms.is_empty() {
        return vec![NodeSelectorTerm { match_expressions: Some(vec![requirement()]), match_fields: None }];
    }
    let mut terms = terms.to_vec();
    for term in terms.iter_mut().filter(|term| !keeps_off(term)) {
        term.match_expressions.get_or_insert_default().push(requirement());
    }
    terms
}

/// Who has declared the affinity that would have to be changed.
pub(super) fn declared(set: &DaemonSet) -> Option<Declared> {
    if is_kept_off(set) { None } else { affinity_declared(set) }
}

/// Keeps kube-proxy off nodes with an agent as long as there are any, or are to be.
pub(super) fn plan(scene: &Scene<'_>, pools: &Pools<'_>, plan: &mut Plan) {
    for (key, set) in scene.cluster.daemon_sets.iter().filter(|(_, set)| !is_pool(set)) {
        let (daemon_set, identity) = (key.clone(), set.identity.clone());
        if pools.want_kept_off(key) {
            if !is_kept_off(set) && (declared(set).is_none() || pools.force(key)) {
                let terms = terms(set);
                // What was written down before stays: these may be terms of ours that somebody has partly undone.
                let record = set.record.clone().unwrap_or_else(|| AffinityRecord {
                    owner: undeclared_owner(&set.owners).filter(|_| !terms.is_empty()),
                    terms: terms.clone(),
                });
                let (terms, record) = (kept_off(&terms), Box::new(record));
                plan.actions.push(Action::KeepOff { daemon_set, identity, terms, record });
            }
        } else if scene.nodes.iter().all(|(_, node)| node.pool.is_none()) {
            plan.actions.extend(release(key, set));
        }
    }
}

/// Gives up what is ours on kube-proxy, the terms first.
fn release(key: &Key, set: &DaemonSet) -> Option<Action> {
    let (daemon_set, identity) = (key.clone(), set.identity.clone());
    let record = set.record.as_ref()?;
    let shared = foreign(&set.owners).any(|owner| owner.field);
    match &record.owner {
        Some(owner) if ours(&set.owners) && !shared && !record.terms.is_empty() => {
            let (owner, terms) = (owner.clone(), record.terms.clone());
            Some(Action::ReturnTerms { daemon_set, identity, owner, terms })
        }
        _ => Some(Action::ReleaseKubeProxy { daemon_set, identity }),
    }
}

/// Whether anything of ours is left on a kube-proxy.
pub(super) fn anything_left(cluster: &Cluster) -> bool {
    cluster.daemon_sets.values().any(|set| !is_pool(set) && set.record.is_some())
}

#[cfg(test)]
mod tests;
