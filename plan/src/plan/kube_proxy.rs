//! Which DaemonSet is the cluster's kube-proxy, how it is configured, where it runs, and how it is
//! kept off nodes with an agent.
//!
//! A requirement in each term of its node affinity keeps it off. Existing terms are extended even
//! if another manager has declared them: without the requirement no agent could run. If another
//! manager removes the requirement, the operator sets it twice in total. Then it reports the other
//! manager and hands the nodes back, because two kube-proxies on a node overwrite each other's
//! rules. The count is stored in the status of the oldest object that needs it, before the affinity
//! is written: an annotation on the DaemonSet could be removed together with the requirement.

mod accepted;
mod keep_off;
mod left_out;

use std::collections::BTreeMap;

use isp_api::Reason;
use isp_api::names::AGENT_POOL_LABEL;
use k8s_openapi::api::apps::v1::DaemonSet as DaemonSetObject;
use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm, PodSpec};
use thiserror::Error;

pub use self::accepted::{Refusal, accepted};
pub(super) use self::keep_off::{anything_left, is_fought, plan, status};
pub(super) use self::left_out::LeftOut;
use crate::build::agents::{Agent, NoAgent, filter_daemon_set, without_requirement};
use crate::cluster::{DaemonSet, Key};
use crate::observe::mounts::{Mounted, holding};
use crate::observe::{NoKubeProxy, flag, mounted_file, runs_kube_proxy};

/// The kubeconfig path in each ConfigMap that configures a kube-proxy, by file.
type Configurations = BTreeMap<Key, BTreeMap<String, String>>;

/// Why no agent can be derived from the cluster's kube-proxy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum Problem {
    #[error(
        "no DaemonSet runs kube-proxy, so its pods cannot be moved behind the agent: name it in spec.kubeProxy; if \
         kube-proxy is not a DaemonSet (systemd, static pod, k3s, or another proxy), mode Filter does not work, and nothing has \
         been changed"
    )]
    NotFound,
    #[error("spec.kubeProxy: DaemonSet {0} does not exist or does not run kube-proxy")]
    NotThere(Key),
    #[error("several DaemonSets run kube-proxy ({0}): name the right one in spec.kubeProxy")]
    Ambiguous(String),
    #[error("DaemonSet {0}: {1}")]
    NoKubeconfig(Key, Box<NoKubeconfig>),
    #[error(
        "DaemonSet {set}: its node affinity {AGENT_POOL_LABEL} DoesNotExist is removed repeatedly, so the operator has stopped restoring it; the nodes \
         return to this kube-proxy. The last writer in its managedFields is {who}: make it keep the affinity, or add the requirement to each \
         term at its source, then change the object's spec"
    )]
    NotKeptOff { set: Key, who: String },
    #[error("DaemonSet {0}: {1}")]
    Unusable(Key, Box<NoAgent>),
}

/// Why kube-proxy's kubeconfig cannot be determined.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum NoKubeconfig {
    #[error(
        "container {container} is started with neither --config nor --kubeconfig, so kube-proxy takes the API server's address from its pod's \
         environment and cannot be redirected to the agent: run it with a kubeconfig from a ConfigMap that names the API server by an address that \
         works without kube-proxy"
    )]
    InCluster { container: String },
    #[error(
        "container {container} is started with --master={server}, which takes precedence over its kubeconfig, so it cannot be redirected to the \
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
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::NotFound | Self::NotThere(_) => Reason::KubeProxyNotFound,
            Self::Ambiguous(_) => Reason::KubeProxyAmbiguous,
            Self::NotKeptOff { .. } => Reason::KubeProxyNotKeptOff,
            Self::NoKubeconfig(..) | Self::Unusable(..) => Reason::KubeProxyUnusable,
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

/// The path of kube-proxy's kubeconfig.
fn kubeconfig(configurations: &Configurations, key: &Key, set: &DaemonSet) -> Result<String, Problem> {
    let pod = set.object.spec.template.spec.as_ref();
    let found = pod.ok_or(NoKubeconfig::NoContainer).and_then(|pod| configured(configurations, key, pod));
    found.map_err(|why| Problem::NoKubeconfig(key.clone(), Box::new(why)))
}

/// The agents of a pool, derived from this kube-proxy.
pub(super) fn agents(
    configurations: &Configurations,
    key: &Key,
    set: &DaemonSet,
    image: &str,
    pool: &str,
) -> Result<DaemonSetObject, Problem> {
    let kubeconfig = kubeconfig(configurations, key, set)?;
    filter_daemon_set(&set.object, Agent { image, pool, kubeconfig: &kubeconfig })
        .map_err(|error| Problem::Unusable(key.clone(), Box::new(error)))
}

/// With --config, kube-proxy ignores the connection flags, except --master, which always applies.
fn configured(configurations: &Configurations, key: &Key, pod: &PodSpec) -> Result<String, NoKubeconfig> {
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
    let named = configurations.get(&map).and_then(|files| files.get(file)).cloned();
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
    term.match_expressions.iter().flatten().any(|present| *present == requirement()) || matches_nothing(term)
}

/// A term without requirements matches no node. Adding ours would make it match nearly all nodes.
fn matches_nothing(term: &NodeSelectorTerm) -> bool {
    term.match_expressions.iter().flatten().next().is_none()
        && term.match_fields.iter().flatten().next().is_none()
}

/// Whether the node affinity excludes nodes with an agent. A node has to match only one term, so
/// each term must contain the requirement.
pub(super) fn is_kept_off(set: &DaemonSet) -> bool {
    let terms = terms(set);
    !terms.is_empty() && terms.iter().all(keeps_off)
}

/// The terms without our requirement, as they were before it was added.
fn original(terms: &[NodeSelectorTerm]) -> Vec<NodeSelectorTerm> {
    let original = |term: &NodeSelectorTerm| {
        let mut term = vec![term.clone()];
        if !term.iter().all(matches_nothing) {
            without_requirement(&mut term);
        }
        term
    };
    terms.iter().flat_map(original).collect()
}

/// The terms with our requirement added to each; at least one term.
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

#[cfg(test)]
mod tests;
