//! The revisions of a pool's agents. Each revision has its own DaemonSet, whose template never
//! changes: a node moves between revisions by its label, in the pool's waves, and can be rolled
//! back. A second DaemonSet prepulls the images of a revision on the nodes to be handed over to it.

use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetSpec, DaemonSetUpdateStrategy};
use k8s_openapi::api::core::v1::{Container, EnvVar, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use super::{AGENT_NAME, NAME_LABEL, confined, runs_kube_proxy};
use crate::names::{AGENT_IMAGES_LABEL, AGENT_POOL_LABEL, AGENT_REVISION_LABEL, IMAGES_NAME};

#[cfg(test)]
mod tests;

/// The environment variable that tells an agent its revision.
const REVISION_VARIABLE: &str = "AGENT_REVISION";

/// The DaemonSet of one revision of a pool: its pods run on nodes with both labels. With
/// `OnDelete`, the DaemonSet controller does not replace them on its own.
pub fn of_revision(mut agents: DaemonSet, revision: &str) -> DaemonSet {
    let name = agents.metadata.name.take().unwrap_or_default();
    agents.metadata.name = Some(format!("{name}-{revision}"));
    agents.spec.update_strategy =
        Some(DaemonSetUpdateStrategy { type_: Some("OnDelete".to_owned()), rolling_update: None });
    label(agents.metadata.labels.get_or_insert_default(), revision);
    label(agents.spec.selector.match_labels.get_or_insert_default(), revision);
    let template = &mut agents.spec.template;
    label(template.metadata.get_or_insert_default().labels.get_or_insert_default(), revision);
    if let Some(pod) = template.spec.as_mut() {
        label(pod.node_selector.get_or_insert_default(), revision);
        let own = pod.init_containers.iter_mut().flatten().filter(|container| container.name == AGENT_NAME);
        for container in own {
            container.env.get_or_insert_default().push(EnvVar {
                name: REVISION_VARIABLE.to_owned(),
                value: Some(revision.to_owned()),
                value_from: None,
            });
        }
    }
    agents
}

fn label(labels: &mut std::collections::BTreeMap<String, String>, revision: &str) {
    labels.insert(AGENT_REVISION_LABEL.to_owned(), revision.to_owned());
}

/// The DaemonSet that prepulls the images of a revision: its pod is ready once the agent's and
/// kube-proxy's images are on the node. Of kube-proxy it only runs `--version`. If kube-proxy is
/// started in another way, for example by a shell, its image is not prepulled: there is no known
/// command without side effects.
pub fn images_of(agents: &DaemonSet, pool: &str, revision: &str) -> DaemonSet {
    let like = agents.spec.template.spec.clone().unwrap_or_default();
    let agent = like.init_containers.iter().flatten().find(|container| container.name == AGENT_NAME);
    let kube_proxy = like.containers.iter().find(|container| runs_kube_proxy(container));
    let pulled = |container: &Container, name: &str, command: Vec<String>, args: &str| Container {
        name: name.to_owned(),
        image: container.image.clone(),
        image_pull_policy: container.image_pull_policy.clone(),
        command: (!command.is_empty()).then_some(command),
        args: Some(vec![args.to_owned()]),
        security_context: Some(confined()),
        ..Container::default()
    };
    let labels = [(NAME_LABEL, IMAGES_NAME), (AGENT_POOL_LABEL, pool), (AGENT_REVISION_LABEL, revision)];
    let labels: std::collections::BTreeMap<String, String> =
        labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let pod = PodSpec {
        init_containers: kube_proxy.and_then(|container| {
            Some(vec![pulled(container, "kube-proxy", program(container)?, "--version")])
        }),
        containers: agent
            .map(|container| pulled(container, "proxy-agent", Vec::new(), "hold"))
            .into_iter()
            .collect(),
        node_selector: Some([(AGENT_IMAGES_LABEL.to_owned(), revision.to_owned())].into()),
        automount_service_account_token: Some(false),
        // Works before the pod network is up, and uses no pod IP.
        host_network: Some(true),
        termination_grace_period_seconds: Some(1),
        tolerations: like.tolerations,
        image_pull_secrets: like.image_pull_secrets,
        priority_class_name: like.priority_class_name,
        ..PodSpec::default()
    };
    DaemonSet {
        metadata: ObjectMeta {
            name: Some(format!("{IMAGES_NAME}-{pool}-{revision}")),
            namespace: agents.metadata.namespace.clone(),
            labels: Some(labels.clone()),
            ..ObjectMeta::default()
        },
        spec: DaemonSetSpec {
            selector: LabelSelector { match_labels: Some(labels.clone()), ..LabelSelector::default() },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
                spec: Some(pod),
            },
            ..DaemonSetSpec::default()
        },
        status: None,
    }
}

/// kube-proxy's command without arguments; empty if the image's entrypoint is used. None if the
/// command is not kube-proxy itself.
fn program(container: &Container) -> Option<Vec<String>> {
    match container.command.as_deref().unwrap_or_default() {
        [] => Some(Vec::new()),
        [program, ..] if program.rsplit('/').next() == Some("kube-proxy") => Some(vec![program.clone()]),
        _ => None,
    }
}
