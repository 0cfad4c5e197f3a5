//! The DaemonSet that prepulls the images of a revision, on the nodes to be handed over to it.

use std::collections::BTreeMap;

use isp_api::names::{
    AGENT_IMAGES_LABEL, AGENT_NAME, AGENT_POOL_LABEL, AGENT_REVISION_LABEL, IMAGES_NAME, NAME_LABEL,
};
use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetSpec};
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use super::agents::confined;
use crate::observe::runs_kube_proxy;

#[cfg(test)]
mod tests;

/// The DaemonSet that prepulls the images of a revision: its pod is ready once the agent's and
/// kube-proxy's images are on the node. Of kube-proxy it only runs `--version`. If kube-proxy is
/// started in another way, for example by a shell, its image is not prepulled: there is no known
/// command without side effects.
pub(crate) fn images_of(agents: &DaemonSet, pool: &str, revision: &str) -> DaemonSet {
    let like = agents.spec.template.spec.clone().unwrap_or_default();
    let mut all = like.init_containers.iter().flatten().chain(&like.containers);
    let agent = all.find(|container| container.name == AGENT_NAME);
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
    let labels: BTreeMap<String, String> =
        labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let pod = PodSpec {
        init_containers: kube_proxy.and_then(|container| {
            Some(vec![pulled(container, "kube-proxy", program(container)?, "--version")])
        }),
        containers: agent
            .map(|container| pulled(container, AGENT_NAME, Vec::new(), "hold"))
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
