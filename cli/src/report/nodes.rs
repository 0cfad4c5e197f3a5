//! The nodes in the words of the page.

use isp_api::node::AgentMode;
use isp_report::model::{Node, Role};

use super::state::State;

/// Labels by which providers name their node pools.
const POOL_LABELS: [&str; 4] = [
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
];
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// The nodes as they are. The last stage decides which ones are ingress nodes.
pub(super) fn nodes(now: &State<'_>, last: &State<'_>) -> Vec<Node> {
    let node = |(name, facts): (&String, _)| {
        let facts: &crate::doctor::NodeFacts = facts;
        let agent = now.agent(name);
        let is_ingress = last.is_ingress(name);
        let role = match agent {
            _ if is_ingress => Role::Ingress,
            Some(_) => Role::NonIngress,
            None => Role::Agentless,
        };
        let named = POOL_LABELS.iter().find_map(|label| facts.labels.get(*label)).map(String::as_str);
        let agents_pool = agent.and_then(|(mode, pool)| (mode == AgentMode::Filter).then_some(pool));
        let other = if facts.labels.contains_key(CONTROL_PLANE) { "control-plane" } else { "workers" };
        let pool = match agents_pool.or(named) {
            _ if is_ingress => named.unwrap_or("ingress"),
            Some(pool) => pool,
            None => other,
        };
        let remark = match (&facts.failure, agent) {
            (Some(failure), _) => format!("agent failed: {failure}"),
            (None, Some((AgentMode::Filter, _))) => "agent of mode Filter".to_owned(),
            (None, Some((AgentMode::Beside, _))) => "agent of mode Beside".to_owned(),
            (None, None) => String::new(),
        };
        Node {
            name: name.clone(),
            pool: pool.to_owned(),
            role,
            ready: facts.ready,
            addresses: facts.addresses.iter().map(ToString::to_string).collect(),
            remark,
        }
    };
    now.cluster.nodes.iter().map(node).collect()
}
