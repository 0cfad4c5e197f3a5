//! Explains one node: which preserved Services it may see and why, which kube-proxy and which agent
//! serve it, and what its agents have acknowledged. Pure.

mod behind;
mod object;
mod report;

use isp_api::names::{AGENT_POOL_LABEL, FAILURE_ANNOTATION};
use isp_api::node::{AgentMode, IngressSourceNodeStatus};
use isp_api::preserve::Mode;
use isp_api::validate::NodeIdentity;
use isp_api::view::{ObjectView, view};
use isp_api::{IngressSourceNode, IngressSourcePreserve};
use isp_plan::Key;
use isp_plan::cluster::{Node, Pod, PodRole};
use kube::ResourceExt;

use self::behind::behind;
use self::object::object_lines;
pub(crate) use self::report::NodeReport;
pub(super) use self::report::report;
use crate::text::{Block, count};

#[cfg(test)]
mod tests;

/// The facts about a node.
pub(super) struct Facts<'a> {
    pub(super) name: &'a str,
    pub(super) node: &'a Node,
    pub(super) objects: &'a [IngressSourcePreserve],
    /// The reports of its agents, one for each mode.
    pub(super) reports: &'a [IngressSourceNode],
    /// The pods on it that run kube-proxy or an agent.
    pub(super) pods: &'a [(Key, Pod)],
    /// The width of the terminal.
    pub(super) width: Option<usize>,
}

impl<'a> Facts<'a> {
    /// The report of the agent of this mode.
    fn report(&self, mode: AgentMode) -> Option<&'a IngressSourceNodeStatus> {
        let name = mode.report_name(self.name);
        let report = self.reports.iter().find(|report| report.name_any() == name)?;
        report.status.as_ref().filter(|status| status.mode == mode)
    }

    /// The pods with an agent of mode Beside.
    fn beside_pods(&self) -> impl Iterator<Item = &'a (Key, Pod)> {
        self.pods.iter().filter(|(_, pod)| pod.role == Some(PodRole::Beside))
    }

    /// The pods that run kube-proxy, the cluster's own or behind an agent.
    fn kube_proxy_pods(&self) -> impl Iterator<Item = &'a (Key, Pod)> {
        self.pods.iter().filter(|(_, pod)| pod.role != Some(PodRole::Beside))
    }

    /// Whether an object or an agent of this mode concerns the node.
    fn has_beside(&self) -> bool {
        let object = self.objects.iter().any(|object| object.spec.mode == Mode::Beside);
        object || self.report(AgentMode::Beside).is_some() || self.beside_pods().next().is_some()
    }
}

/// The agents' mode for an object's mode.
fn agent_mode(mode: Mode) -> AgentMode {
    match mode {
        Mode::Filter => AgentMode::Filter,
        Mode::Beside => AgentMode::Beside,
    }
}

/// What the node should see, and whether it does.
struct Assessment {
    views: Vec<ObjectView>,
    /// Whatever has not followed yet.
    behind: Vec<String>,
    sound: bool,
}

impl Assessment {
    fn of(facts: &Facts<'_>) -> Self {
        let node = NodeIdentity { name: facts.name, labels: &facts.node.labels };
        let views = view(node, facts.objects).objects;
        let behind = behind(facts, &views);
        let sound = behind.is_empty() && is_settled(facts) && views.iter().all(|own| own.doubt.is_none());
        Self { views, behind, sound }
    }
}

/// The explanation as text for people.
pub(super) fn explain(facts: &Facts<'_>) -> String {
    let heading = format!("{}: {}", facts.name, heading(facts));
    let mut block = Block::new(&heading, facts.width);
    block.field("kube-proxy", kube_proxies(facts));
    if facts.has_beside() {
        block.field("agent", beside_agents(facts));
    }
    let Assessment { views, behind, .. } = Assessment::of(facts);
    for own in &views {
        if let Some(object) = facts.objects.iter().find(|object| object.name_any() == own.object) {
            block.field(&own.object, object_lines(facts, object, own));
        }
    }
    if facts.objects.is_empty() {
        block.field("objects", ["none: the node sees all Services".to_owned()]);
    }
    block.field("behind", behind);
    if let Some(failure) = &facts.node.failure {
        let name = facts.name;
        let problem = format!("the agent of pool {} failed on this node: {}", failure.pool, failure.reason);
        block.field("problem", [problem]);
        let retry = format!(
            "kubectl annotate node {name} {FAILURE_ANNOTATION}-   # retries, once the cause is fixed"
        );
        block.commands("to do", [retry]);
    }
    block.into_text()
}

/// Whether the node is ready, does not move between kube-proxies, and no pod of it fails.
fn is_settled(facts: &Facts<'_>) -> bool {
    let node = facts.node;
    let stray = node.pool.is_none() && node.labels.contains_key(AGENT_POOL_LABEL);
    let fails = |pod: &Pod| pod.trouble.is_some() || pod.role.is_some() && !pod.ready;
    node.ready
        && node.handover.is_none()
        && node.failure.is_none()
        && !stray
        && !facts.pods.iter().any(|(_, pod)| fails(pod))
}

/// The proxies that serve the node, in a line.
fn heading(facts: &Facts<'_>) -> String {
    let node = facts.node;
    let served = match (kube_proxy(node), beside(facts)) {
        (None, Some(serves)) => {
            let proxy = match facts.kube_proxy_pods().next() {
                Some(_) => "the cluster's kube-proxy",
                None => "the node's own proxy",
            };
            format!("the agent {serves} beside {proxy}")
        }
        (None, None) if facts.has_beside() && facts.kube_proxy_pods().next().is_none() => {
            "served by its own proxy".to_owned()
        }
        (None, None) => "served by the cluster's kube-proxy".to_owned(),
        (Some(kube_proxy), Some(serves)) => format!("{kube_proxy}; an agent of mode Beside {serves}"),
        (Some(kube_proxy), None) => kube_proxy,
    };
    if node.ready { served } else { format!("{served}; the node is NotReady") }
}

/// The kube-proxy that serves the node. None: the cluster's own, as without the operator.
fn kube_proxy(node: &Node) -> Option<String> {
    let label = node.labels.get(AGENT_POOL_LABEL);
    let since = |handover: &isp_plan::record::Handover| handover.started.strftime("%F %T UTC").to_string();
    Some(match (&node.pool, &node.handover, label) {
        (Some(pool), None, _) => format!("served by the agent of pool {pool}"),
        (Some(pool), Some(handover), _) => {
            format!("moving to the agent of pool {pool} since {}", since(handover))
        }
        (None, Some(handover), _) => {
            let (pool, since) = (&handover.pool, since(handover));
            format!("moving back from the agent of pool {pool} to the cluster's kube-proxy since {since}")
        }
        (None, None, Some(pool)) => {
            format!("has label {AGENT_POOL_LABEL}={pool}, which the operator did not set: remove it")
        }
        (None, None, None) => return None,
    })
}

/// What the agent of mode Beside does, if one reports.
fn beside(facts: &Facts<'_>) -> Option<String> {
    let views = &facts.report(AgentMode::Beside)?.views;
    let number: usize = views.iter().map(|view| view.services.len()).sum();
    Some(format!("serves {}", count(u64::try_from(number).unwrap_or(u64::MAX), "preserved Service")))
}

/// The pods that run kube-proxy.
fn kube_proxies(facts: &Facts<'_>) -> Vec<String> {
    let line = |(key, pod): &(Key, Pod)| {
        let place = if pod.role.is_some() { "behind the agent" } else { "the cluster's own" };
        format!("{place}: pod {key}, {}", state(pod))
    };
    let lines: Vec<String> = facts.kube_proxy_pods().map(line).collect();
    if !lines.is_empty() {
        return lines;
    }
    let needed = facts.objects.iter().any(|object| object.spec.mode == Mode::Filter);
    let none = "no pod on this node runs it";
    vec![if facts.has_beside() && !needed {
        format!("{none}; mode Beside needs none")
    } else {
        none.to_owned()
    }]
}

/// The pods with an agent of mode Beside.
fn beside_agents(facts: &Facts<'_>) -> Vec<String> {
    let lines: Vec<String> =
        facts.beside_pods().map(|(key, pod)| format!("mode Beside: pod {key}, {}", state(pod))).collect();
    if lines.is_empty() { vec!["mode Beside: no pod on this node runs it".to_owned()] } else { lines }
}

fn state(pod: &Pod) -> String {
    match &pod.trouble {
        Some(trouble) => trouble.clone(),
        None if pod.ready => "ready".to_owned(),
        None => "not ready".to_owned(),
    }
}
