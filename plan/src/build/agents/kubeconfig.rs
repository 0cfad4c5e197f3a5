//! Makes kube-proxy read the agent's kubeconfig at the path of its own.
//!
//! | original kubeconfig | kube-proxy gets |
//! |---|---|
//! | in a volume of symlinks (ConfigMap, Secret, projected), mounted as its directory | the agent's volume as that directory, with the other files copied |
//! | a file of another volume (hostPath, emptyDir), mounted at any parent directory | one file of the agent's volume mounted over it; the rest is unchanged |
//! | mounted as a single file (`subPath`, a hostPath of a file) | one file of the agent's volume instead |
//!
//! A mount over a symlink would follow it into the volume, and be lost when the kubelet swaps the
//! symlinks.

use k8s_openapi::api::core::v1::{Container, PodSpec, VolumeMount};

use super::NoAgent;
use crate::observe::mounts::{components, holding};

/// The replaced mounts of kube-proxy's container.
pub(super) struct Replacement {
    pub(super) mounts: Vec<VolumeMount>,
    /// The mount through which the agent reads the original kubeconfig.
    pub(super) original: VolumeMount,
    /// Whether the whole directory is replaced, so that the agent must copy the other files.
    pub(super) whole_directory: bool,
}

/// Mounts a file of the volume `shared` over the kubeconfig at `path`.
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

/// The agent only reads, and unprivileged containers may not propagate mounts.
fn for_agent(original: VolumeMount) -> VolumeMount {
    VolumeMount { read_only: Some(true), mount_propagation: None, ..original }
}
