//! Whether the cluster became what the description of each write said.

use serde_json::{Value, json};

use crate::planned::{PlanOutput, Step, pool};
use crate::world::World;

pub(crate) async fn check(world: &World, plan: &PlanOutput) {
    for (Step { action, object }, description) in plan.steps() {
        let wrong = |found: &Value| format!("{action}: {description}, but it is {found}");
        match action.as_str() {
            "label-service" | "take-over-service" => {
                let label = description.strip_prefix("set label ").unwrap();
                let (label, _) = label.split_once(&format!(" on Service {object}")).unwrap();
                let (key, value) = label.split_once('=').unwrap();
                let labels = &world.get("service", object).await["metadata"]["labels"];
                assert_eq!(labels[key], value, "{}", wrong(labels));
            }
            "localise-service" => {
                let spec = &world.get("service", object).await["spec"];
                let begin = format!("set externalTrafficPolicy=Local on Service {object} (was Cluster)");
                assert!(description.starts_with(&begin), "{description}");
                assert_eq!(spec["externalTrafficPolicy"], "Local", "{}", wrong(spec));
                let followed = description.contains("must follow healthCheckNodePort");
                assert_eq!(spec["healthCheckNodePort"].is_number(), followed, "{}", wrong(spec));
            }
            "hand-over-node" => {
                let labels = &world.get("node", object).await["metadata"]["labels"];
                assert_eq!(labels["sourcepreserve.io/agent-pool"], pool(description), "{}", wrong(labels));
            }
            "apply-pool" => {
                let pod = &world.agents(object).await["spec"]["template"]["spec"];
                let containers = [&pod["initContainers"], &pod["containers"]].map(|list| list.as_array());
                let mut images =
                    containers.into_iter().flatten().flatten().map(|container| &container["image"]);
                let image = image(description, &format!("create DaemonSet {object} (image "));
                assert!(images.any(|each| each == image), "{}", wrong(pod));
            }
            "apply-beside" => {
                let pod = &world.get("daemonset", object).await["spec"]["template"]["spec"];
                let description = description.strip_suffix(", which runs on every node").unwrap();
                let image = image(description, &format!("create DaemonSet {object} (image "));
                assert_eq!(pod["containers"][0]["image"], image, "{}", wrong(pod));
                assert_eq!(pod["tolerations"], json!([{"operator": "Exists"}]), "{}", wrong(pod));
            }
            // The DaemonSet is gone when its images are pulled.
            "apply-images" => {
                assert!(!image(description, &format!("create DaemonSet {object} (pulls image ")).is_empty());
            }
            "keep-kube-proxy-off" => {
                let pod = &world.get("daemonset", object).await["spec"]["template"]["spec"];
                let required =
                    &pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
                let begin = format!("add node affinity to DaemonSet {object}: ");
                let wanted = description.strip_prefix(&begin).unwrap();
                let (key, operator) = wanted.split_once(' ').unwrap();
                let expressions = json!([{"key": key, "operator": operator}]);
                let terms = json!([{"matchExpressions": expressions}]);
                assert_eq!(required["nodeSelectorTerms"], terms, "{}", wrong(pod));
            }
            _ => assert_eq!(description, &unchecked(action, object), "no check compares it with the cluster"),
        }
    }
}

fn image<'a>(description: &'a str, begin: &str) -> &'a str {
    let image = description.strip_prefix(begin).and_then(|image| image.strip_suffix(')'));
    image.unwrap_or_else(|| panic!("{description:?} does not begin with {begin:?}"))
}

/// The descriptions that claim no more than that the write is made, which the audit log shows.
fn unchecked(action: &str, object: &str) -> String {
    let moved = "then record that the move is complete";
    match action {
        "hold-object" => format!("add finalizer sourcepreserve.io/restore to IngressSourcePreserve {object}"),
        "apply-agent-account" if object.contains('/') => format!("create ServiceAccount {object}"),
        "apply-agent-account" => format!("create ClusterRole {object}"),
        "bind-agent-account" => format!("create ClusterRoleBinding {object}"),
        "apply-agent-policy" => format!("create ValidatingAdmissionPolicy {object}"),
        "bind-agent-policy" => format!("create ValidatingAdmissionPolicyBinding {object}"),
        "apply-pod-webhook" => format!("create MutatingWebhookConfiguration {object}"),
        "apply-pod-policy" => format!("create MutatingAdmissionPolicy {object}"),
        "bind-pod-policy" => format!("create MutatingAdmissionPolicyBinding {object}"),
        "pull-images" => format!("pull the agent's images on node {object}"),
        "handed-over-node" => format!("wait until the agent serves node {object}, {moved}"),
        "delete-images" => format!("delete DaemonSet {object}"),
        other => panic!("nobody looks whether {other} {object} became so"),
    }
}
