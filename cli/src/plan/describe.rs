//! One sentence for each action of a plan, in the words of an engineer who would do it by hand.
//!
//! The machine name of an action (`Action::kind`) stays in the operator's log, its metrics and
//! `plan -o json`. Pure; called by `forecast`.

use isp_api::names::{
    AGENT_NAME, AGENT_POOL_LABEL, BESIDE_NAME, FINALIZER, IMAGES_NAME, PROXY_NAME, SERVICE_LABEL,
    SERVICE_PROXY_NAME_LABEL,
};
use isp_api::preserve::TrafficPolicy;
use isp_plan::action::{NodeShape, NodeStep, Returned, ServiceStep, Shape};
use isp_plan::{Action, Cluster, Key, observe};
use k8s_openapi::api::apps::v1::DaemonSet;

#[cfg(test)]
mod tests;

const NODE: &str = "node";
const SERVICE: &str = "Service";
const DAEMON_SET: &str = "DaemonSet";
const PRESERVE: &str = "IngressSourcePreserve";

/// A sentence with a gap for the names of its targets, so that equal actions share one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sentence {
    before: String,
    noun: &'static str,
    after: String,
}

impl Sentence {
    fn new(before: impl Into<String>, noun: &'static str, after: impl Into<String>) -> Self {
        Self { before: before.into(), noun, after: after.into() }
    }

    /// The sentence about these targets; `names` lists as many as `count`.
    pub(super) fn about(&self, names: &str, count: usize) -> String {
        let Self { before, noun, after } = self;
        format!("{before} {} {names}{after}", plural(noun, count))
    }
}

fn plural(noun: &str, count: usize) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => noun.to_owned(),
        (_, Some(stem)) => format!("{stem}ies"),
        (_, None) => format!("{noun}s"),
    }
}

/// What the action does. `cluster` is the state before the action.
pub(super) fn describe(cluster: &Cluster, action: &Action) -> Sentence {
    match action {
        Action::Finalizer { held: true, .. } => {
            Sentence::new(format!("add finalizer {FINALIZER} to"), PRESERVE, "")
        }
        Action::Finalizer { held: false, .. } => {
            Sentence::new(format!("remove finalizer {FINALIZER} from"), PRESERVE, "")
        }
        Action::ShapeService { service, shape, step, .. } => shape_service(cluster, service, shape, *step),
        Action::ReturnFields { owner, fields, .. } => {
            let change = match fields {
                Returned::Policy => "set externalTrafficPolicy=Cluster on".to_owned(),
                Returned::Label(label) => format!("set label {}={} again on", label.key, label.value),
                Returned::Everything { .. } => "undo the operator's changes to".to_owned(),
                Returned::ToKubeProxy => {
                    let change = format!("remove label {SERVICE_PROXY_NAME_LABEL} from");
                    return Sentence::new(change, SERVICE, ": every kube-proxy serves it again");
                }
            };
            Sentence::new(change, SERVICE, format!(" as field manager {owner}"))
        }
        Action::ShapeNode { node, shape, step, .. } => shape_node(cluster, node, shape, *step),
        Action::KeepOff { .. } => {
            Sentence::new("add node affinity to", DAEMON_SET, format!(": {AGENT_POOL_LABEL} DoesNotExist"))
        }
        Action::ReturnTerms { owner, .. } => {
            Sentence::new("restore the node affinity of", DAEMON_SET, format!(" as field manager {owner}"))
        }
        Action::ReleaseKubeProxy { .. } => {
            Sentence::new("remove the operator's node affinity and annotation from", DAEMON_SET, "")
        }
        Action::ApplyPool { daemon_set, .. } => apply_pool(cluster, daemon_set),
        Action::DeletePool { .. } => Sentence::new("delete", DAEMON_SET, ""),
        Action::Forget { .. } => Sentence::new("delete", "IngressSourceNode", ""),
        Action::ApplyOwn { kind, key, .. } => {
            let exists = cluster.own(*kind).any(|(known, _)| known == key);
            Sentence::new(create_or_update(exists), kind.kind(), "")
        }
        Action::DeleteOwn { kind, .. } => Sentence::new("delete", kind.kind(), ""),
        Action::Status { .. } => Sentence::new("update the status of", PRESERVE, ""),
    }
}

fn create_or_update(exists: bool) -> &'static str {
    if exists { "update" } else { "create" }
}

fn shape_service(cluster: &Cluster, service: &Key, shape: &Shape, step: ServiceStep) -> Sentence {
    const NO_ENDPOINT: &str = ": no ingress node has a ready endpoint";
    let sentence = |before: &str, after: &str| Sentence::new(before, SERVICE, after);
    match step {
        ServiceStep::Label => {
            let label = shape.label.as_ref().map_or_else(|| SERVICE_LABEL.to_owned(), ToString::to_string);
            sentence(&format!("set label {label} on"), "")
        }
        ServiceStep::TakeOver => sentence(
            &format!("set label {SERVICE_PROXY_NAME_LABEL}={PROXY_NAME} on"),
            ": every kube-proxy skips it, and the agents serve it",
        ),
        ServiceStep::GivenBack => sentence("record that every kube-proxy serves", " again"),
        ServiceStep::Localise => {
            let service = cluster.services.get(service);
            let before = service.and_then(|service| service.policy).unwrap_or(TrafficPolicy::Cluster);
            // The consequence that readers of a plan miss most easily.
            let balanced = service.is_some_and(|service| service.balanced);
            let warning = if balanced { "; its load balancer must follow healthCheckNodePort" } else { "" };
            sentence("set externalTrafficPolicy=Local on", &format!(" (was {before:?}){warning}"))
        }
        ServiceStep::Open => {
            sentence("remove the label from", &format!("{NO_ENDPOINT}, so every node serves it"))
        }
        ServiceStep::FallBack => sentence("remove the label from", NO_ENDPOINT),
        ServiceStep::GiveUpPolicy => sentence("set externalTrafficPolicy=Cluster on", " (was Local)"),
        ServiceStep::Release => sentence("remove the operator's label and annotation from", ""),
        ServiceStep::Retain => sentence("keep", " as it is (deletionPolicy: Retain)"),
    }
}

fn shape_node(cluster: &Cluster, node: &str, shape: &NodeShape, step: NodeStep) -> Sentence {
    let sentence = |before: &str, after: &str| Sentence::new(before, NODE, after);
    let why = || shape.failure.as_ref().map(|failure| format!(": {}", failure.reason)).unwrap_or_default();
    match step {
        NodeStep::PullImages => sentence("pull the agent's images on", ""),
        NodeStep::GiveUpImages => sentence("stop pulling the agent's images on", &why()),
        NodeStep::HandOver => {
            let pool = shape.pool.as_deref().unwrap_or_default();
            let has_agent = cluster.nodes.get(node).is_some_and(|node| node.pool.as_deref() == Some(pool));
            let revision = if has_agent { "new revision of the agent" } else { "agent" };
            sentence("move", &format!(" to the {revision} of pool {pool}"))
        }
        NodeStep::HandedOver => {
            sentence("wait until the agent serves", ", then record that the move is complete")
        }
        NodeStep::HandBack => sentence("move", " back to the cluster's kube-proxy"),
        NodeStep::RollBack => {
            let to = match &shape.pool {
                Some(_) => "the previous revision of the agent",
                None => "the cluster's kube-proxy",
            };
            sentence("roll back", &format!(" to {to}{}", why()))
        }
        NodeStep::Suspect => {
            sentence("schedule a restart of the agent on", ": another kube-proxy wrote rules there")
        }
        NodeStep::StopAgent => sentence("stop the agent on", ", to restart it"),
        NodeStep::StartAgent => sentence("start the agent on", " again"),
        NodeStep::HandedBack => {
            sentence("wait until the cluster's kube-proxy serves", ", then record that the move is complete")
        }
        NodeStep::Release => sentence("remove the operator's labels and annotations from", ""),
    }
}

fn apply_pool(cluster: &Cluster, daemon_set: &DaemonSet) -> Sentence {
    let exists = cluster.daemon_sets.contains_key(&observe::key(&daemon_set.metadata));
    let runs_everywhere = daemon_set.metadata.name.as_deref() == Some(BESIDE_NAME);
    let pulls = daemon_set.metadata.name.as_deref().is_some_and(|name| name.starts_with(IMAGES_NAME));
    let after = match (image(daemon_set), pulls) {
        (Some(image), true) => format!(" (pulls image {image})"),
        (Some(image), false) if runs_everywhere => format!(" (image {image}), which runs on every node"),
        (Some(image), false) => format!(" (image {image})"),
        (None, _) => String::new(),
    };
    Sentence::new(create_or_update(exists), DAEMON_SET, after)
}

fn image(set: &DaemonSet) -> Option<&str> {
    let pod = set.spec.template.spec.as_ref()?;
    let mut containers = pod.init_containers.iter().flatten().chain(&pod.containers);
    containers.find(|container| container.name == AGENT_NAME)?.image.as_deref()
}
