//! The agents' image: from the operator's Deployment, else from existing agents.

use isp_api::names::{AGENT_NAME, OPERATOR_FIELD_MANAGER};
use isp_plan::Cluster;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;

use crate::connection::Connection;

/// Used if no operator is installed and no image was named.
const ANY: &str = "proxy-agent";

pub(super) async fn find(connection: &Connection, namespace: &str, cluster: &Cluster) -> String {
    let api: Api<Deployment> = Api::namespaced(connection.client.clone(), namespace);
    // Without the right to read it, the plan is still useful: only the image differs.
    let operator = api.get_opt(OPERATOR_FIELD_MANAGER).await.ok().flatten();
    operator.as_ref().and_then(of_operator).unwrap_or_else(|| without_operator(cluster))
}

/// The image where no operator is known.
pub(super) fn without_operator(cluster: &Cluster) -> String {
    of_agents(cluster).unwrap_or_else(|| ANY.to_owned())
}

/// The image that the operator gives to agents.
pub(super) fn of_operator(operator: &Deployment) -> Option<String> {
    let pod = operator.spec.template.spec.as_ref()?;
    pod.containers.iter().find_map(|container| {
        let flag = container.args.iter().flatten().find_map(|word| word.strip_prefix("--agent-image="));
        let variable = container.env.iter().flatten().find(|variable| variable.name == "AGENT_IMAGE");
        flag.map(str::to_owned).or_else(|| variable.and_then(|variable| variable.value.clone()))
    })
}

fn of_agents(cluster: &Cluster) -> Option<String> {
    let mut pools = cluster.daemon_sets.values().filter(|set| set.made);
    pools.find_map(|set| {
        let pod = set.object.spec.template.spec.as_ref()?;
        let mut containers = pod.init_containers.iter().flatten().chain(&pod.containers);
        containers.find(|container| container.name == AGENT_NAME)?.image.clone()
    })
}
