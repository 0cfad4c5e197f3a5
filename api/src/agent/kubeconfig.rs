//! How kube-proxy comes to read the agent's kubeconfig at the path of its own.
//!
//! | its own kubeconfig is | then kube-proxy gets |
//! |---|---|
//! | in a volume of links (ConfigMap, Secret, projected), mounted as its directory | the agent's volume as that directory, with its other files copied |
//! | a file of another volume (hostPath, emptyDir), mounted anywhere above it | one file of the agent's volume on top of it; the rest stays |
//! | mounted by itself (`subPath`, a hostPath of a file) | one file of the agent's volume in its place |
//!
//! A mount on top of a link would end up in the volume itself, and be lost when the kubelet turns the links over.

use k8s_openapi::api::core::v1::{Container, PodSpec, VolumeMount};

use super::NoAgent;
use super::mounts::{components, holding};

/// What the mounts of kube-proxy's container become.
pub(super) struct Replacement {
    pub(super) mounts: Vec<VolumeMount>,
    /// The mount by which the agent reads the original.
    pub(super) original: VolumeMount,
    /// Whether kube-proxy sees the other files of the directory only if the agent copies them.
    pub(super) whole_directory: bool,
}

/// Puts a file of the volume `shared` where the kubeconfig at `path` was.
pub(super) fn replace(
    pod: &PodSpec,
    container: &Container,
    path: &str,
    shared: &str,
) -> Result<Replacement, NoAgent> {
    let about = || (container.name.clone(), path.to_owned());
    let not_mounted = || {
        let (container, path) = about();
        NoAgent::NotMounted { container, path }
    };
    let held = holding(pod, container, path).ok_or_else(not_mounted)?;
    if held.mount.sub_path_expr.is_some() {
        let (container, path) = about();
        return Err(NoAgent::Expression { container, path });
    }
    let parts = components(path).unwrap_or_default();
    let (file, directory) = parts.split_last().ok_or_else(not_mounted)?;
    let mut mounts = container.volume_mounts.clone().unwrap_or_default();
    let original = held.mount.clone();
    let alone = VolumeMount {
        name: shared.to_owned(),
        mount_path: path.to_owned(),
        sub_path: Some((*file).to_owned()),
        read_only: Some(true),
        ..VolumeMount::default()
    };
    match held.below.len() {
        0 => mounts[held.place] = alone,
        _ if !held.has_links() => mounts.push(alone),
        1 => {
            let inside = |mount: &&VolumeMount| {
                let at = components(&mount.mount_path);
                at.is_some_and(|at| at.len() > directory.len() && at.starts_with(directory))
            };
            if let Some(inside) = mounts.iter().find(inside) {
                let (container, path) = about();
                return Err(NoAgent::Occupied { container, path, inside: inside.mount_path.clone() });
            }
            let whole = VolumeMount { sub_path: None, mount_path: original.mount_path.clone(), ..alone };
            mounts[held.place] = whole;
            return Ok(Replacement { mounts, original: for_agent(original), whole_directory: true });
        }
        _ => {
            let (container, path) = about();
            let directory = format!("/{}", directory.join("/"));
            let (volume, kind) = (held.volume.name.clone(), held.kind());
            return Err(NoAgent::Nested { container, path, volume, kind, directory });
        }
    }
    Ok(Replacement { mounts, original: for_agent(original), whole_directory: false })
}

/// The agent only reads, and is not privileged, so it may not propagate mounts.
fn for_agent(original: VolumeMount) -> VolumeMount {
    VolumeMount { read_only: Some(true), mount_propagation: None, ..original }
}
