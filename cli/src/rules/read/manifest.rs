//! The manifest of the helper pod, with just the rights that it needs.
//!
//! Entering a network namespace takes `SYS_ADMIN`, listing its rules `NET_ADMIN`. The helper sees
//! the node's network namespaces, and no other files, processes or tokens.

use k8s_openapi::api::core::v1::{
    Capabilities, Container, HostPathVolumeSource, Pod, SeccompProfile, SecurityContext, Volume, VolumeMount,
};

use crate::helper::{self, Kind};
use crate::rules::target::Target;

const NAMESPACES: &str = "/var/run/netns";
const VOLUME: &str = "network-namespaces";

pub(super) fn manifest(kind: &Kind, name: &str, target: &Target, image: &str) -> Pod {
    let address = target.addresses.first().map(ToString::to_string).unwrap_or_default();
    let container = Container {
        name: super::CONTAINER.to_owned(),
        args: Some(vec![
            "read".to_owned(),
            format!("--pod-ip={address}"),
            format!("--namespaces={NAMESPACES}"),
        ]),
        security_context: Some(security()),
        volume_mounts: Some(vec![VolumeMount {
            name: VOLUME.to_owned(),
            mount_path: NAMESPACES.to_owned(),
            mount_propagation: Some("HostToContainer".to_owned()),
            read_only: Some(true),
            ..VolumeMount::default()
        }]),
        ..Container::default()
    };
    let mut pod = helper::manifest::pod(kind, name, &target.node, image, container);
    if let Some(spec) = &mut pod.spec {
        spec.volumes = Some(vec![Volume {
            name: VOLUME.to_owned(),
            host_path: Some(HostPathVolumeSource {
                path: NAMESPACES.to_owned(),
                type_: Some("Directory".to_owned()),
            }),
            ..Volume::default()
        }]);
    }
    pod
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
