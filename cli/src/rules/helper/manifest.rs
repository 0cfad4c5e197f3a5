//! The manifest of the helper pod, with just the rights that it needs.
//!
//! Entering a network namespace takes `SYS_ADMIN`, listing its rules `NET_ADMIN`. The helper sees
//! the node's network namespaces, and no other files, processes or tokens.

use std::collections::BTreeMap;
use std::time::Duration;

use isp_api::names::NAME_LABEL;
use k8s_openapi::api::core::v1::{
    Capabilities, Container, HostPathVolumeSource, Pod, PodSpec, ResourceRequirements, SeccompProfile,
    SecurityContext, Toleration, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::ObjectMeta;

use crate::rules::target::Target;

/// By these labels a later run finds helpers.
pub(super) const LABELS: [(&str, &str); 2] =
    [(NAME_LABEL, "isp-rules"), ("app.kubernetes.io/part-of", "ingress-source-preserve")];

/// The names of helpers begin with it.
pub(super) const PREFIX: &str = "isp-rules-";
const CONTAINER: &str = "read";
const NAMESPACES: &str = "/var/run/netns";
const VOLUME: &str = "network-namespaces";
const RESOURCES: [(&str, &str); 2] = [("cpu", "100m"), ("memory", "32Mi")];

pub(super) fn manifest(name: &str, target: &Target, image: &str, lifetime: Duration) -> Pod {
    let address = target.addresses.first().map(ToString::to_string).unwrap_or_default();
    let amounts: BTreeMap<_, _> =
        RESOURCES.map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned()))).into();
    Pod {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(LABELS.map(|(name, value)| (name.to_owned(), value.to_owned())).into()),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            node_name: Some(target.node.clone()),
            restart_policy: Some("Never".to_owned()),
            active_deadline_seconds: i64::try_from(lifetime.as_secs()).ok(),
            termination_grace_period_seconds: Some(1),
            automount_service_account_token: Some(false),
            enable_service_links: Some(false),
            // The pod's node may have any taint.
            tolerations: Some(vec![Toleration {
                operator: Some("Exists".to_owned()),
                ..Toleration::default()
            }]),
            containers: vec![Container {
                name: CONTAINER.to_owned(),
                image: Some(image.to_owned()),
                image_pull_policy: Some("IfNotPresent".to_owned()),
                args: Some(vec![
                    "read".to_owned(),
                    format!("--pod-ip={address}"),
                    format!("--namespaces={NAMESPACES}"),
                ]),
                resources: Some(ResourceRequirements {
                    requests: Some(amounts.clone()),
                    limits: Some(amounts),
                    ..ResourceRequirements::default()
                }),
                security_context: Some(security()),
                termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
                volume_mounts: Some(vec![VolumeMount {
                    name: VOLUME.to_owned(),
                    mount_path: NAMESPACES.to_owned(),
                    mount_propagation: Some("HostToContainer".to_owned()),
                    read_only: Some(true),
                    ..VolumeMount::default()
                }]),
                ..Container::default()
            }],
            volumes: Some(vec![Volume {
                name: VOLUME.to_owned(),
                host_path: Some(HostPathVolumeSource {
                    path: NAMESPACES.to_owned(),
                    type_: Some("Directory".to_owned()),
                }),
                ..Volume::default()
            }]),
            ..PodSpec::default()
        }),
        ..Pod::default()
    }
}

/// Whether a pod is a helper.
pub(super) fn is_helper(pod: &Pod) -> bool {
    let is_named = pod.metadata.name.as_ref().is_some_and(|name| name.starts_with(PREFIX));
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    is_named && containers.map(|container| container.name.as_str()).eq([CONTAINER])
}

/// The API server refuses `allowPrivilegeEscalation: false` together with `SYS_ADMIN`.
fn security() -> SecurityContext {
    let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    SecurityContext {
        capabilities: Some(Capabilities { add: names(&["NET_ADMIN", "SYS_ADMIN"]), drop: names(&["ALL"]) }),
        read_only_root_filesystem: Some(true),
        run_as_user: Some(0),
        run_as_group: Some(0),
        seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".to_owned(), localhost_profile: None }),
        ..SecurityContext::default()
    }
}
