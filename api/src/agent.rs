//! Builds the DaemonSet of a pool's agents from the cluster's own kube-proxy: the same image,
//! flags, configuration, mounts and tolerations, with the agent added and the kubeconfig replaced.
//! Pure; the operator applies the result.

mod kubeconfig;
pub mod mounts;

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

use self::kubeconfig::Replacement;
use crate::names::{AGENT_NAME, AGENT_POOL_LABEL, NAME_LABEL};

mod revision;

pub use revision::{images_of, of_revision};

#[cfg(test)]
mod tests;

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
#[allow(missing_docs, reason = "the messages say it")]
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
/// Serves health checks on loopback and metrics on the node's IP.
const ADMIN_PORT: i32 = 10261;
/// An arbitrary unprivileged user.
const AGENT_USER: i64 = 65532;

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
    pod.node_selector.get_or_insert_default().insert(AGENT_POOL_LABEL.to_owned(), agent.pool.to_owned());
    pod.service_account_name = Some(AGENT_NAME.to_owned());
    pod.service_account = None;
    // The agent needs its ServiceAccount token even if kube-proxy has its own credentials.
    pod.automount_service_account_token = None;
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
                // Without kube-proxy's labels: otherwise the cluster's DaemonSet would adopt these
                // pods.
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
pub fn without_requirement(terms: &mut Vec<NodeSelectorTerm>) {
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
        args: Some(arguments),
        env: Some(vec![
            environment("NODE_NAME", None, Some("spec.nodeName")),
            environment("AGENT_POOL", Some(agent.pool), None),
            environment("METRICS_HOST", None, Some("status.hostIP")),
        ]),
        ports: Some(vec![ContainerPort {
            name: Some("metrics".to_owned()),
            container_port: ADMIN_PORT,
            // Required to equal the container port on the host network; the API server would
            // default it.
            host_port: Some(ADMIN_PORT),
            protocol: Some("TCP".to_owned()),
            host_ip: None,
        }]),
        restart_policy: Some("Always".to_owned()),
        // The agent writes a termination message if it cannot start. Otherwise the log is used. The
        // operator reads either from the pod's status.
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        // A new agent waits up to a minute for the previous one to release its ports.
        startup_probe: Some(probe("/healthz", 1, 90)),
        readiness_probe: Some(probe("/readyz", 1, 3)),
        // Fails if the agent does not answer or one of its tasks hangs. The node keeps its rules
        // meanwhile, so the threshold is generous, to tolerate a busy node.
        liveness_probe: Some(probe("/healthz", 10, 6)),
        volume_mounts: Some(vec![
            original,
            VolumeMount {
                name: SHARED.to_owned(),
                mount_path: SHARED_PATH.to_owned(),
                read_only: Some(false),
                ..VolumeMount::default()
            },
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

/// A fully restricted security context.
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
