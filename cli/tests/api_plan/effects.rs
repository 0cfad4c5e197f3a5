//! Whether the cluster became what each step of a plan said it would change.

use serde_json::{Value, json};

use crate::told::{Step, Told, pool};
use crate::world::World;

pub(crate) async fn check(world: &World, told: &Told) {
    for (Step { action, object }, effect) in told.steps() {
        let wrong = |found: &Value| format!("{action} {object}: {effect}, but it is {found}");
        match action.as_str() {
            "label-service" => {
                let (key, value) = effect.split_once('=').unwrap();
                let labels = &world.get("service", object).await["metadata"]["labels"];
                assert_eq!(labels[key], value, "{}", wrong(labels));
            }
            "localise-service" => {
                let spec = &world.get("service", object).await["spec"];
                assert!(effect.starts_with("externalTrafficPolicy Cluster -> Local"), "{effect}");
                assert_eq!(spec["externalTrafficPolicy"], "Local", "{}", wrong(spec));
                let followed = effect.contains("must follow healthCheckNodePort");
                assert_eq!(spec["healthCheckNodePort"].is_number(), followed, "{}", wrong(spec));
            }
            "hand-over-node" => {
                let labels = &world.get("node", object).await["metadata"]["labels"];
                assert_eq!(labels["sourcepreserve.io/agent-pool"], pool(effect), "{}", wrong(labels));
            }
            "apply-pool" => {
                let pod = &world.agents(object).await["spec"]["template"]["spec"];
                let containers = [&pod["initContainers"], &pod["containers"]].map(|list| list.as_array());
                let mut images =
                    containers.into_iter().flatten().flatten().map(|container| &container["image"]);
                let image = effect.strip_prefix("image ").unwrap();
                assert!(images.any(|each| each == image), "{}", wrong(pod));
            }
            // They are gone when their images are there.
            "apply-images" => assert!(effect.starts_with("image "), "{action} {object}: {effect}"),
            "keep-kube-proxy-off" => {
                let pod = &world.get("daemonset", object).await["spec"]["template"]["spec"];
                let required =
                    &pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
                let (_, wanted) = effect.split_once(", ").unwrap();
                let (key, operator) = wanted.split_once(' ').unwrap();
                let expressions = json!([{"key": key, "operator": operator}]);
                let terms = json!([{"matchExpressions": expressions}]);
                assert_eq!(required["nodeSelectorTerms"], terms, "{}", wrong(pod));
            }
            _ => assert_eq!(effect, "", "{action} {object}: nobody looks whether this became so"),
        }
    }
}
