//! On which nodes a DaemonSet's pods run: its node selector and its required node affinity, as the scheduler reads them.

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm, PodSpec};

use crate::cluster::Node;

/// Whether a node is admitted.
pub(super) fn admits(pod: &PodSpec, name: &str, node: &Node) -> bool {
    let selected = pod.node_selector.iter().flatten().all(|(key, value)| node.labels.get(key) == Some(value));
    let affinity = pod.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required =
        affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    selected
        && required
            .is_none_or(|required| required.node_selector_terms.iter().any(|term| holds(term, name, node)))
}

/// A term without any requirement matches no node at all.
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
