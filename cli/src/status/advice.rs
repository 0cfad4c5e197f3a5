//! Commands for the reason of a condition, where its message does not give them already.

use isp_api::names::{
    AGENT_MODE_LABEL, AGENT_NAME, BESIDE_MODE, FAILURE_ANNOTATION, NAME_LABEL, OPERATOR_FIELD_MANAGER,
    WEBHOOK_SERVICE,
};
use isp_api::preserve::Mode;
use isp_api::{IngressSourcePreserve, Reason};
use kube::ResourceExt;

use super::nodes::{Nodes, failed, without_pool};
use crate::text::{few, use_beside};

/// So many nodes or namespaces are named in a command.
const MAX_NAMES: usize = 5;
/// The reason of an object that no operator has observed.
pub(super) const NOT_OBSERVED: &str = "NotObserved";
/// Stands for a node where the right to list nodes is missing.
const SOME_NODE: &str = "<node>";

/// Commands that fix the problem or show more, one per line.
pub(super) fn advice(object: &IngressSourcePreserve, nodes: &Nodes, reason: &str) -> Vec<String> {
    let name = object.name_any();
    if reason == NOT_OBSERVED {
        return vec![pods_of(OPERATOR_FIELD_MANAGER, "whether the operator runs")];
    }
    let Some(reason) = Reason::parse(reason) else { return Vec::new() };
    match reason {
        Reason::WebhookUnavailable => vec![pods_of(WEBHOOK_SERVICE, "whether the webhook runs")],
        // Nothing is recorded on the node: the DaemonSet goes on trying.
        Reason::WaveFailed if object.spec.mode == Mode::Beside => vec![format!(
            "kubectl get pods -A -o wide -l {NAME_LABEL}={AGENT_NAME},{AGENT_MODE_LABEL}={BESIDE_MODE}   # describe the agents that are not ready"
        )],
        Reason::WaveFailed => vec![
            format!(
                "kubectl get pods -A -o wide -l {NAME_LABEL}={AGENT_NAME}   # describe the agents that are not ready"
            ),
            format!(
                "kubectl annotate node {} {FAILURE_ANNOTATION}-   # retries, once the cause is fixed",
                names(&failed(object, nodes))
            ),
        ],
        Reason::NodeNotReady => vec!["kubectl get nodes   # which nodes are NotReady".to_owned()],
        Reason::NodeWithoutPool => {
            let first = without_pool(object, nodes).first().copied().unwrap_or(SOME_NODE);
            vec![format!("kubectl isp explain-node {first}   # why no pool selects it")]
        }
        Reason::Paused => vec![format!(
            r#"kubectl patch isp {name} --type=merge -p '{{"spec":{{"rollout":{{"paused":false}}}}}}'   # resumes"#
        )],
        Reason::KubeProxyNotFound | Reason::KubeProxyUnusable => vec![use_beside(&name)],
        Reason::NoIngressNodes => label(object, nodes),
        Reason::NoIngressEndpoint | Reason::Degraded => endpoints(object),
        _ => Vec::new(),
    }
}

fn names(nodes: &[&str]) -> String {
    match nodes {
        [] => SOME_NODE.to_owned(),
        nodes => nodes.iter().take(MAX_NAMES).copied().collect::<Vec<_>>().join(" "),
    }
}

fn pods_of(program: &str, comment: &str) -> String {
    format!("kubectl get pods -A -l {NAME_LABEL}={program}   # {comment}")
}

/// How to label an ingress node, where labels are all that the selector asks for.
///
/// Which node receives the traffic is the reader's choice, so the candidates are only listed.
fn label(object: &IngressSourcePreserve, nodes: &Nodes) -> Vec<String> {
    let selector = &object.spec.ingress_nodes.selector;
    let Some(labels) = selector.match_labels.as_ref().filter(|_| selector.match_expressions.is_none()) else {
        return Vec::new();
    };
    let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let known: Vec<String> = nodes.iter().flatten().map(|(name, _)| name.clone()).collect();
    let known = if known.is_empty() { String::new() } else { format!(", of {}", few(&known)) };
    vec![format!(
        "kubectl label node {SOME_NODE} {}   # each node that receives the traffic{known}",
        labels.join(" ")
    )]
}

/// Where the pods of Services without an endpoint on an ingress node run.
fn endpoints(object: &IngressSourcePreserve) -> Vec<String> {
    let services = object.status.iter().flat_map(|status| &status.services);
    let mut namespaces: Vec<&str> = services
        .filter(|service| service.ingress_endpoints == 0)
        .map(|service| service.namespace.as_str())
        .collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    let line = |namespace: &&str| format!("kubectl get pods -n {namespace} -o wide   # where its pods run");
    namespaces.iter().take(MAX_NAMES).map(line).collect()
}
