//! What to do about a condition, by its reason, where its message does not say it already.

use isp_api::IngressSourcePreserve;
use isp_api::names::{AGENT_NAME, FAILURE_ANNOTATION, NAME_LABEL, OPERATOR_FIELD_MANAGER, WEBHOOK_SERVICE};
use kube::ResourceExt;

/// Commands that help or show more, one a line.
pub(super) fn advice(object: &IngressSourcePreserve, reason: &str) -> Vec<String> {
    let name = object.name_any();
    match reason {
        "NotObserved" => vec![pods_of(OPERATOR_FIELD_MANAGER, "whether the operator runs")],
        "WebhookUnavailable" => vec![pods_of(WEBHOOK_SERVICE, "whether the webhook runs")],
        "WaveFailed" => vec![
            format!(
                "kubectl get pods -A -o wide -l {NAME_LABEL}={AGENT_NAME}   # the agents; describe those that are not ready"
            ),
            format!("kubectl annotate node NODE {FAILURE_ANNOTATION}-   # tries it again once it is mended"),
        ],
        "NodeNotReady" => vec!["kubectl get nodes   # which do not answer".to_owned()],
        "NodeWithoutPool" => vec!["kubectl isp explain-node NODE   # why it matches no pool".to_owned()],
        "Paused" => vec![format!(
            r#"kubectl patch isp {name} --type=merge -p '{{"spec":{{"rollout":{{"paused":false}}}}}}'   # goes on"#
        )],
        "NoIngressNodes" => label(object),
        "NoIngressEndpoint" | "Degraded" => endpoints(object),
        _ => Vec::new(),
    }
}

fn pods_of(program: &str, what: &str) -> String {
    format!("kubectl get pods -A -l {NAME_LABEL}={program}   # {what}")
}

/// How to label an ingress node, where that is one label.
fn label(object: &IngressSourcePreserve) -> Vec<String> {
    let selector = &object.spec.ingress_nodes.selector;
    match &selector.match_labels {
        Some(labels) if selector.match_expressions.is_none() => {
            let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
            vec![format!("kubectl label node NODE {}", labels.join(" "))]
        }
        _ => Vec::new(),
    }
}

/// Where the pods of Services without an endpoint run.
fn endpoints(object: &IngressSourcePreserve) -> Vec<String> {
    let services = object.status.iter().flat_map(|status| &status.services);
    let mut namespaces: Vec<&str> = services
        .filter(|service| service.ingress_endpoints == 0)
        .map(|service| service.namespace.as_str())
        .collect();
    namespaces.dedup();
    let line = |namespace: &&str| format!("kubectl get pods -n {namespace} -o wide   # where its pods run");
    namespaces.iter().take(3).map(line).collect()
}
