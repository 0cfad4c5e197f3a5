//! The DaemonSet of a pool's agents, made from the cluster's own kube-proxy: the same image, flags, configuration, mounts
//! and tolerations, with the agent beside it and one file replaced, the kubeconfig. Pure; the operator applies it.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetSpec};
use k8s_openapi::api::core::v1::{
    Affinity, Capabilities, Container, ContainerPort, EmptyDirVolumeSource, EnvVar, EnvVarSource,
    HTTPGetAction, NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm, ObjectFieldSelector, PodSpec,
    PodTemplateSpec, Probe, ResourceRequirements, SeccompProfile, SecurityContext, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use thiserror::Error;

use crate::names::{AGENT_NAME, AGENT_POOL_LABEL, NAME_LABEL};

mod revision;

pub use revision::{images_of, of_revision};

#[cfg(test)]
mod tests;

/// What the agent's own container needs to be told.
#[derive(Clone, Copy, Debug)]
pub struct Agent<'a> {
    /// Its image.
    pub image: &'a str,
    /// The pool that its nodes belong to.
    pub pool: &'a str,
    /// Where kube-proxy's configuration says that its kubeconfig is.
    pub kubeconfig: &'a str,
}

/// A DaemonSet that does not run kube-proxy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "DaemonSet {namespace}/{name} has no container that runs kube-proxy: name the right one in spec.kubeProxy"
)]
pub struct NotKubeProxy {
    namespace: String,
    name: String,
}

/// A volume in memory that only the two containers share.
const SHARED: &str = "proxy-agent";
const SHARED_PATH: &str = "/run/proxy-agent";
/// Health on the loopback, and metrics on the node's address.
const ADMIN_PORT: i32 = 10261;
/// Nobody in particular: the agent owns nothing on the node.
const AGENT_USER: i64 = 65532;

/// The agents of a pool in mode `Filter`.
pub fn filter_daemon_set(kube_proxy: &DaemonSet, agent: Agent<'_>) -> Result<DaemonSet, NotKubeProxy> {
    let not_kube_proxy = || NotKubeProxy {
        namespace: kube_proxy.metadata.namespace.clone().unwrap_or_default(),
        name: kube_proxy.metadata.name.clone().unwrap_or_default(),
    };
    let spec = kube_proxy.spec.clone();
    let mut pod = spec.template.spec.ok_or_else(not_kube_proxy)?;
    let container =
        pod.containers.iter_mut().find(|container| runs_kube_proxy(container)).ok_or_else(not_kube_proxy)?;

    let directory = agent.kubeconfig.rsplit_once('/').map_or("/", |(directory, _)| directory);
    let mounts = container.volume_mounts.get_or_insert_default();
    let own = mounts.iter_mut().find(|mount| mount.mount_path == directory).ok_or_else(not_kube_proxy)?;
    // A mount over one file of a ConfigMap is no way: the kubelet makes a directory in its place, in the volume itself. So
    // kube-proxy gets another volume there, which the agent fills with the same files and a kubeconfig of its own.
    let original = std::mem::replace(own, mount(SHARED, directory, true));
    pod.init_containers.get_or_insert_default().push(agent_container(agent, original));
    pod.volumes.get_or_insert_default().push(Volume {
        name: SHARED.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource {
            medium: Some("Memory".to_owned()),
            size_limit: Some(Quantity("1Mi".to_owned())),
            ..EmptyDirVolumeSource::default()
        }),
        ..Volume::default()
    });
    pod.node_selector.get_or_insert_default().insert(AGENT_POOL_LABEL.to_owned(), agent.pool.to_owned());
    pod.service_account_name = Some(AGENT_NAME.to_owned());
    pod.service_account = None;
    only_on_nodes_of_a_pool(&mut pod);

    let labels: BTreeMap<String, String> = [(NAME_LABEL, AGENT_NAME), (AGENT_POOL_LABEL, agent.pool)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
    let annotations = spec.template.metadata.and_then(|metadata| metadata.annotations);
    Ok(DaemonSet {
        metadata: ObjectMeta {
            name: Some(format!("{AGENT_NAME}-{}", agent.pool)),
            namespace: kube_proxy.metadata.namespace.clone(),
            labels: Some(labels.clone()),
            ..ObjectMeta::default()
        },
        spec: DaemonSetSpec {
            selector: LabelSelector { match_labels: Some(labels.clone()), ..LabelSelector::default() },
            template: PodTemplateSpec {
                // None of kube-proxy's own labels: the cluster's DaemonSet would take these pods for its own.
                metadata: Some(ObjectMeta { labels: Some(labels), annotations, ..ObjectMeta::default() }),
                spec: Some(pod),
            },
            ..DaemonSetSpec::default()
        },
        status: None,
    })
}

/// Whether a container runs kube-proxy, by its name or its command.
pub fn runs_kube_proxy(container: &Container) -> bool {
    let words = container.command.iter().chain(&container.args).flatten();
    container.name == "kube-proxy"
        || words.into_iter().any(|word| word.rsplit('/').next() == Some("kube-proxy"))
}

/// The requirement that keeps the cluster's own kube-proxy off these nodes must not keep the agent off as well. What
/// comes out is the same whether the requirement has been there or not.
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

/// Terms of a node affinity without the requirement that keeps kube-proxy off nodes with an agent.
pub fn without_requirement(terms: &mut Vec<NodeSelectorTerm>) {
    for expressions in terms.iter_mut().filter_map(|term| term.match_expressions.as_mut()) {
        expressions.retain(|requirement| requirement.key != AGENT_POOL_LABEL);
    }
    // A term without any requirement matches no node at all.
    let says_something =
        |list: &Option<Vec<NodeSelectorRequirement>>| list.as_ref().is_some_and(|list| !list.is_empty());
    terms.retain(|term| says_something(&term.match_expressions) || says_something(&term.match_fields));
    for term in terms {
        term.match_expressions = term.match_expressions.take().filter(|list| !list.is_empty());
    }
}

/// It starts before kube-proxy, which finds its kubeconfig written, and goes on beside it.
fn agent_container(agent: Agent<'_>, original: VolumeMount) -> Container {
    let environment = |name: &str, value: Option<&str>, field: Option<&str>| EnvVar {
        name: name.to_owned(),
        value: value.map(str::to_owned),
        value_from: field.map(|path| EnvVarSource {
            field_ref: Some(ObjectFieldSelector { field_path: path.to_owned(), api_version: None }),
            ..EnvVarSource::default()
        }),
    };
    let probe = |path: &str, period_seconds, failure_threshold| Probe {
        http_get: Some(HTTPGetAction {
            host: Some("127.0.0.1".to_owned()),
            path: Some(path.to_owned()),
            port: IntOrString::Int(ADMIN_PORT),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period_seconds),
        timeout_seconds: Some(5),
        failure_threshold: Some(failure_threshold),
        ..Probe::default()
    };
    Container {
        name: AGENT_NAME.to_owned(),
        image: Some(agent.image.to_owned()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        args: Some(vec![
            "filter".to_owned(),
            format!("--kube-proxy-kubeconfig={}", agent.kubeconfig),
            format!("--serving-directory={SHARED_PATH}"),
        ]),
        env: Some(vec![
            environment("NODE_NAME", None, Some("spec.nodeName")),
            environment("AGENT_POOL", Some(agent.pool), None),
            environment("METRICS_HOST", None, Some("status.hostIP")),
        ]),
        ports: Some(vec![ContainerPort {
            name: Some("metrics".to_owned()),
            container_port: ADMIN_PORT,
            // In the node's network they are the same, which the API server would add.
            host_port: Some(ADMIN_PORT),
            protocol: Some("TCP".to_owned()),
            host_ip: None,
        }]),
        restart_policy: Some("Always".to_owned()),
        // An agent waits for up to a minute for the one before it to let go of its ports.
        startup_probe: Some(probe("/healthz", 1, 90)),
        readiness_probe: Some(probe("/readyz", 1, 3)),
        // Fails when the program does not answer, or when a task of it no longer turns. A node keeps its rules meanwhile, so that there
        // is no hurry, and a busy node no reason.
        liveness_probe: Some(probe("/healthz", 10, 6)),
        volume_mounts: Some(vec![
            VolumeMount { read_only: Some(true), ..original },
            mount(SHARED, SHARED_PATH, false),
        ]),
        resources: Some(ResourceRequirements {
            requests: Some([("cpu", "10m"), ("memory", "16Mi")].map(quantity).into()),
            limits: Some([("memory", "64Mi")].map(quantity).into()),
            ..ResourceRequirements::default()
        }),
        security_context: Some(confined()),
        ..Container::default()
    }
}

/// No rights on the node at all.
fn confined() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities { add: None, drop: Some(vec!["ALL".to_owned()]) }),
        read_only_root_filesystem: Some(true),
        run_as_non_root: Some(true),
        run_as_user: Some(AGENT_USER),
        run_as_group: Some(AGENT_USER),
        seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".to_owned(), localhost_profile: None }),
        ..SecurityContext::default()
    }
}

fn quantity((name, amount): (&str, &str)) -> (String, Quantity) {
    (name.to_owned(), Quantity(amount.to_owned()))
}

fn mount(volume: &str, path: &str, read_only: bool) -> VolumeMount {
    VolumeMount {
        name: volume.to_owned(),
        mount_path: path.to_owned(),
        read_only: Some(read_only),
        ..VolumeMount::default()
    }
}
