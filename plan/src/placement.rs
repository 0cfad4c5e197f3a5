//! On which nodes a DaemonSet's pods run: node selector, required node affinity and tolerations,
//! evaluated as by the scheduler and the DaemonSet controller.

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Toleration};

use crate::cluster::{Node, Taint};

/// Prefix of taints for node conditions, which the DaemonSet controller makes its pods tolerate.
const CONDITIONS: &str = "node.kubernetes.io/";
/// Identify virtual kubelets. kube-proxy cannot run there even if its DaemonSet tolerates every
/// taint.
const VIRTUAL_TAINT: &str = "virtual-kubelet.io/provider";
const VIRTUAL_LABEL: (&str, &str) = ("type", "virtual-kubelet");

/// Whether the node is a virtual kubelet.
pub(crate) fn is_virtual(node: &Node) -> bool {
    let (key, value) = VIRTUAL_LABEL;
    node.labels.get(key).is_some_and(|found| found == value)
        || node.taints.iter().any(|taint| taint.key == VIRTUAL_TAINT)
}

/// Whether the pod tolerates the node's taints.
pub(crate) fn tolerates(pod: &PodSpec, node: &Node) -> bool {
    let matters = |taint: &&Taint| taint.effect != "PreferNoSchedule" && !taint.key.starts_with(CONDITIONS);
    let mut taints = node.taints.iter().filter(matters);
    taints.all(|taint| pod.tolerations.iter().flatten().any(|toleration| covers(toleration, taint)))
}

fn covers(toleration: &Toleration, taint: &Taint) -> bool {
    let any = |wanted: &Option<String>| wanted.as_deref().is_none_or(str::is_empty);
    let effect = any(&toleration.effect) || toleration.effect.as_ref() == Some(&taint.effect);
    let exists = toleration.operator.as_deref() == Some("Exists");
    let key = (any(&toleration.key) && exists) || toleration.key.as_ref() == Some(&taint.key);
    let value = exists || toleration.value.as_deref().unwrap_or_default() == taint.value;
    effect && key && value
}

/// Whether node selector and required node affinity match the node.
pub(crate) fn admits(pod: &PodSpec, name: &str, node: &Node) -> bool {
    let selected = pod.node_selector.iter().flatten().all(|(key, value)| node.labels.get(key) == Some(value));
    let affinity = pod.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required =
        affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    selected
        && required
            .is_none_or(|required| required.node_selector_terms.iter().any(|term| holds(term, name, node)))
}

/// A term without requirements matches no node.
fn holds(term: &NodeSelectorTerm, name: &str, node: &Node) -> bool {
    let labels = term.match_expressions.iter().flatten();
    let fields = term.match_fields.iter().flatten();
    let nothing = labels.clone().next().is_none() && fields.clone().next().is_none();
    !nothing
        && labels.into_iter().all(|each| requires(each, node.labels.get(&each.key).map(String::as_str)))
        && fields.into_iter().all(|each| requires(each, (each.key == "metadata.name").then_some(name)))
}

fn requires(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let mut values = requirement.values.iter().flatten();
    let number = |text: &str| text.parse::<i64>().ok();
    match requirement.operator.as_str() {
        "In" => values.any(|wanted| Some(wanted.as_str()) == value),
        "NotIn" => values.all(|unwanted| Some(unwanted.as_str()) != value),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        comparison @ ("Gt" | "Lt") => {
            let bound = values.next().and_then(|bound| number(bound));
            match (value.and_then(number), bound) {
                (Some(value), Some(bound)) if comparison == "Gt" => value > bound,
                (Some(value), Some(bound)) => value < bound,
                _ => false,
            }
        }
        _ => false,
    }
}
