//! The DaemonSets of a pool's agents, one file per mode, and the parts that all modes share.

mod beside;
mod filter;
mod kubeconfig;
mod revision;

use std::collections::BTreeMap;

use isp_api::names::{AGENT_NAME, AGENT_POOL_LABEL, NAME_LABEL};
use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetSpec};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, ContainerPort, EnvVar, EnvVarSource, HTTPGetAction, ObjectFieldSelector,
    PodSpec, PodTemplateSpec, Probe, ResourceRequirements, SeccompProfile, SecurityContext,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

pub use self::beside::beside_daemon_set;
pub(crate) use self::filter::without_requirement;
pub use self::filter::{Agent, NoAgent, filter_daemon_set};
pub use self::revision::of_revision;

/// Mode Filter: serves health checks on loopback and metrics on the node's IP.
const ADMIN_PORT: i32 = 10261;
/// An arbitrary unprivileged user.
const AGENT_USER: i64 = 65532;

/// The DaemonSet of a pool. Its pods run on the nodes with the pool's label.
fn daemon_set(
    pool: &str,
    namespace: Option<String>,
    mut pod: PodSpec,
    annotations: Option<BTreeMap<String, String>>,
) -> DaemonSet {
    pod.node_selector.get_or_insert_default().insert(AGENT_POOL_LABEL.to_owned(), pool.to_owned());
    pod.service_account_name = Some(AGENT_NAME.to_owned());
    let labels: BTreeMap<String, String> = [(NAME_LABEL, AGENT_NAME), (AGENT_POOL_LABEL, pool)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
    DaemonSet {
        metadata: ObjectMeta {
            name: Some(format!("{AGENT_NAME}-{pool}")),
            namespace,
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
    }
}

/// The agent's container with the settings of every mode.
fn container(image: &str, pool: Option<&str>, arguments: Vec<String>, admin_port: i32) -> Container {
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
            port: IntOrString::Int(admin_port),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period_seconds),
        timeout_seconds: Some(5),
        failure_threshold: Some(failure_threshold),
        ..Probe::default()
    };
    Container {
        name: AGENT_NAME.to_owned(),
        image: Some(image.to_owned()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        args: Some(arguments),
        env: Some(
            [
                Some(environment("NODE_NAME", None, Some("spec.nodeName"))),
                pool.map(|pool| environment("AGENT_POOL", Some(pool), None)),
                Some(environment("METRICS_HOST", None, Some("status.hostIP"))),
            ]
            .into_iter()
            .flatten()
            .collect(),
        ),
        ports: Some(vec![ContainerPort {
            name: Some("metrics".to_owned()),
            container_port: admin_port,
            // Required to equal the container port on the host network; the API server would
            // default it.
            host_port: Some(admin_port),
            protocol: Some("TCP".to_owned()),
            host_ip: None,
        }]),
        // The agent writes a termination message if it cannot start. Otherwise the log is used. The
        // operator reads either from the pod's status.
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        // A new agent waits up to a minute for the previous one to release its ports.
        startup_probe: Some(probe("/healthz", 1, 90)),
        readiness_probe: Some(probe("/readyz", 1, 3)),
        // Fails if the agent does not answer or one of its tasks hangs. The node keeps its rules
        // meanwhile, so the threshold is generous, to tolerate a busy node.
        liveness_probe: Some(probe("/healthz", 10, 6)),
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
pub(super) fn confined() -> SecurityContext {
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

pub(super) fn quantity((name, amount): (&str, &str)) -> (String, Quantity) {
    (name.to_owned(), Quantity(amount.to_owned()))
}

#[cfg(test)]
mod tests;
