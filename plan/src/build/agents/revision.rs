//! The revisions of a pool's agents. Each revision has its own DaemonSet, whose template never
//! changes: a node moves between revisions by its label, in the pool's waves, and can be rolled
//! back.

use std::collections::BTreeMap;

use isp_api::names::{AGENT_NAME, AGENT_REVISION_LABEL};
use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetUpdateStrategy};
use k8s_openapi::api::core::v1::EnvVar;

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
        let containers = pod.init_containers.iter_mut().flatten().chain(&mut pod.containers);
        for container in containers.filter(|container| container.name == AGENT_NAME) {
            container.env.get_or_insert_default().push(EnvVar {
                name: REVISION_VARIABLE.to_owned(),
                value: Some(revision.to_owned()),
                value_from: None,
            });
        }
    }
    agents
}

fn label(labels: &mut BTreeMap<String, String>, revision: &str) {
    labels.insert(AGENT_REVISION_LABEL.to_owned(), revision.to_owned());
}
