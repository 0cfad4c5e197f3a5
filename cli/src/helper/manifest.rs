//! What all helper pods have in common: they are pinned to a node, end by themselves, and get no
//! token. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, ResourceRequirements, Toleration};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::ObjectMeta;

use super::Kind;

const RESOURCES: [(&str, &str); 2] = [("cpu", "100m"), ("memory", "32Mi")];

/// A helper pod with this container.
pub(crate) fn pod(kind: &Kind, name: &str, node: &str, image: &str, container: Container) -> Pod {
    let amounts: BTreeMap<_, _> =
        RESOURCES.map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned()))).into();
    let container = Container {
        image: Some(image.to_owned()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        resources: Some(ResourceRequirements {
            requests: Some(amounts.clone()),
            limits: Some(amounts),
            ..ResourceRequirements::default()
        }),
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        ..container
    };
    Pod {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(kind.labels()),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            node_name: Some(node.to_owned()),
            restart_policy: Some("Never".to_owned()),
            active_deadline_seconds: i64::try_from(kind.lifetime.as_secs()).ok(),
            termination_grace_period_seconds: Some(1),
            automount_service_account_token: Some(false),
            enable_service_links: Some(false),
            // The node may have any taint.
            tolerations: Some(vec![Toleration {
                operator: Some("Exists".to_owned()),
                ..Toleration::default()
            }]),
            containers: vec![container],
            ..PodSpec::default()
        }),
        ..Pod::default()
    }
}
