//! Mode Filter: the DaemonSet is derived from the cluster's own kube-proxy. It has the same image,
//! flags, configuration, mounts and tolerations, with the agent added and the kubeconfig replaced.

use isp_api::names::AGENT_POOL_LABEL;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{
    Affinity, Container, EmptyDirVolumeSource, NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm,
    PodSpec, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use thiserror::Error;

use super::kubeconfig::{self, Replacement};
use super::{ADMIN_PORT, container, daemon_set};
use crate::observe::runs_kube_proxy;

/// The settings of the agent's container.
#[derive(Clone, Copy, Debug)]
pub struct Agent<'a> {
    /// Its image.
    pub image: &'a str,
    /// The pool of its nodes.
    pub pool: &'a str,
    /// The path of kube-proxy's kubeconfig, according to its configuration.
    pub kubeconfig: &'a str,
}

/// Why no agent can be derived from a DaemonSet.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum NoAgent {
    #[error(
        "DaemonSet {namespace}/{name} has no container that runs kube-proxy: name the right one in spec.kubeProxy"
    )]
    NotKubeProxy { namespace: String, name: String },
    #[error(
        "container {container} reads its kubeconfig {path} from no volume of its pod, so the agent cannot put its own there: mount it from a \
         ConfigMap"
    )]
    NotMounted { container: String, path: String },
    #[error(
        "container {container} reads its kubeconfig {path} from a subdirectory of the {kind} volume {volume}, where the agent cannot put its \
         own: mount the volume's part at {directory}, or the whole with the kubeconfig at its top"
    )]
    Nested { container: String, path: String, volume: String, kind: &'static str, directory: String },
    #[error(
        "container {container} mounts its kubeconfig {path} by subPathExpr, which only its own environment explains: use subPath, or a volume \
         for it alone"
    )]
    Expression { container: String, path: String },
    #[error(
        "container {container} has a mount at {inside}, in the directory of its kubeconfig {path}, which the agent replaces: mount it \
         elsewhere"
    )]
    Occupied { container: String, path: String, inside: String },
}

/// An in-memory volume shared by the two containers only.
const SHARED: &str = "proxy-agent";
const SHARED_PATH: &str = "/run/proxy-agent";
/// Builds the DaemonSet of a pool's agents in mode `Filter`.
pub fn filter_daemon_set(kube_proxy: &DaemonSet, agent: Agent<'_>) -> Result<DaemonSet, NoAgent> {
    let not_kube_proxy = || NoAgent::NotKubeProxy {
        namespace: kube_proxy.metadata.namespace.clone().unwrap_or_default(),
        name: kube_proxy.metadata.name.clone().unwrap_or_default(),
    };
    let spec = kube_proxy.spec.clone();
    let mut pod = spec.template.spec.ok_or_else(not_kube_proxy)?;
    let place = pod.containers.iter().position(runs_kube_proxy).ok_or_else(not_kube_proxy)?;
    let Replacement { mounts, original, whole_directory } =
        kubeconfig::replace(&pod, &pod.containers[place], agent.kubeconfig, SHARED)?;
    pod.containers[place].volume_mounts = Some(mounts);
    pod.init_containers.get_or_insert_default().push(agent_container(agent, original, whole_directory));
    pod.volumes.get_or_insert_default().push(Volume {
        name: SHARED.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource {
            medium: Some("Memory".to_owned()),
            size_limit: Some(Quantity("1Mi".to_owned())),
            ..EmptyDirVolumeSource::default()
        }),
        ..Volume::default()
    });
    pod.service_account = None;
    // The agent needs its ServiceAccount token even if kube-proxy has its own credentials.
    pod.automount_service_account_token = None;
    only_on_nodes_of_a_pool(&mut pod);
    let annotations = spec.template.metadata.and_then(|metadata| metadata.annotations);
    Ok(daemon_set(agent.pool, kube_proxy.metadata.namespace.clone(), pod, annotations))
}

/// Removes the requirement that keeps the cluster's kube-proxy off these nodes, because it would
/// also exclude the agent. The result does not depend on whether the requirement was set.
fn only_on_nodes_of_a_pool(pod: &mut PodSpec) {
    let Some(affinity) = pod.affinity.as_mut() else { return };
    if let Some(node_affinity) = affinity.node_affinity.as_mut() {
        if let Some(required) = node_affinity.required_during_scheduling_ignored_during_execution.as_mut() {
            without_requirement(&mut required.node_selector_terms);
            if required.node_selector_terms.is_empty() {
                node_affinity.required_during_scheduling_ignored_during_execution = None;
            }
        }
        if *node_affinity == NodeAffinity::default() {
            affinity.node_affinity = None;
        }
    }
    if *affinity == Affinity::default() {
        pod.affinity = None;
    }
}

/// Removes the requirement that keeps kube-proxy off nodes with an agent from node affinity terms.
pub(crate) fn without_requirement(terms: &mut Vec<NodeSelectorTerm>) {
    for expressions in terms.iter_mut().filter_map(|term| term.match_expressions.as_mut()) {
        expressions.retain(|requirement| requirement.key != AGENT_POOL_LABEL);
    }
    // A term without requirements matches no node.
    let says_something =
        |list: &Option<Vec<NodeSelectorRequirement>>| list.as_ref().is_some_and(|list| !list.is_empty());
    terms.retain(|term| says_something(&term.match_expressions) || says_something(&term.match_fields));
    for term in terms {
        term.match_expressions = term.match_expressions.take().filter(|list| !list.is_empty());
    }
}

/// A sidecar init container: it starts before kube-proxy, writes its kubeconfig, and keeps running.
fn agent_container(agent: Agent<'_>, original: VolumeMount, whole_directory: bool) -> Container {
    let mut arguments = vec![
        "filter".to_owned(),
        format!("--kube-proxy-kubeconfig={}", agent.kubeconfig),
        format!("--serving-directory={SHARED_PATH}"),
    ];
    if !whole_directory {
        arguments.push("--only-kubeconfig".to_owned());
    }
    Container {
        restart_policy: Some("Always".to_owned()),
        volume_mounts: Some(vec![
            original,
            VolumeMount {
                name: SHARED.to_owned(),
                mount_path: SHARED_PATH.to_owned(),
                read_only: Some(false),
                ..VolumeMount::default()
            },
        ]),
        ..container(agent.image, Some(agent.pool), arguments, ADMIN_PORT)
    }
}
