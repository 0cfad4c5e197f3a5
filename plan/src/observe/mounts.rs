//! Finds the mount of a container that contains a path, and the path within the volume. Paths are
//! compared as text by component; as in the kernel, `//`, `.` and a trailing slash are ignored. No
//! file is accessed.

use k8s_openapi::api::core::v1::{Container, KeyToPath, PodSpec, Volume, VolumeMount};

#[cfg(test)]
mod tests;

/// A path in a container and the mount that contains it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mounted<'a> {
    /// The index of the mount in the container's list.
    pub(crate) place: usize,
    /// The innermost mount that contains the path.
    pub(crate) mount: &'a VolumeMount,
    /// The mounted volume.
    pub(crate) volume: &'a Volume,
    /// The path below the mount point; empty if it is the mount point itself.
    pub(crate) below: Vec<&'a str>,
}

/// The components of an absolute path. None if it is relative or contains `..`.
pub(crate) fn components(path: &str) -> Option<Vec<&str>> {
    let parts: Vec<&str> =
        path.strip_prefix('/')?.split('/').filter(|part| !["", "."].contains(part)).collect();
    (!parts.contains(&"..")).then_some(parts)
}

/// Finds the mount for a path. None if no volume contains it.
pub(crate) fn holding<'a>(pod: &'a PodSpec, container: &'a Container, path: &'a str) -> Option<Mounted<'a>> {
    let path = components(path)?;
    let mounts = container.volume_mounts.iter().flatten().enumerate();
    let above = mounts.filter_map(|(place, mount)| {
        let at = components(&mount.mount_path)?;
        Some((place, mount, path.strip_prefix(at.as_slice())?.to_vec()))
    });
    let (place, mount, below) = above.min_by_key(|(.., below)| below.len())?;
    let volume = pod.volumes.iter().flatten().find(|volume| volume.name == mount.name)?;
    Some(Mounted { place, mount, volume, below })
}

impl<'a> Mounted<'a> {
    /// The ConfigMap that the file comes from, and its key.
    pub(crate) fn config_map(&self) -> Option<(&'a str, &'a str)> {
        let file = self.in_volume()?;
        if let Some(map) = &self.volume.config_map {
            return Some((&map.name, key(map.items.as_deref(), &file)?));
        }
        let sources = self.volume.projected.as_ref()?.sources.iter().flatten();
        let mut maps = sources.filter_map(|source| source.config_map.as_ref());
        let named =
            maps.clone().find(|map| map.items.is_some() && key(map.items.as_deref(), &file).is_some());
        // Of several sources without `items` the last wins, as in the kubelet.
        let map = named.or_else(|| maps.rfind(|map| map.items.is_none()))?;
        Some((&map.name, key(map.items.as_deref(), &file)?))
    }

    /// The path from the volume's root. None with `subPathExpr`, which only the kubelet can expand.
    fn in_volume(&self) -> Option<Vec<&'a str>> {
        if self.mount.sub_path_expr.is_some() {
            return None;
        }
        let part = self.mount.sub_path.as_deref().unwrap_or_default();
        let part = part.split('/').filter(|part| !["", "."].contains(part));
        Some(part.chain(self.below.iter().copied()).collect())
    }

    /// Whether the files are symlinks, which the kubelet swaps on updates. With `subPath` the file
    /// is bind-mounted as it was at startup.
    pub(crate) fn has_links(&self) -> bool {
        let Volume { config_map, secret, projected, downward_api, .. } = self.volume;
        let whole = self.mount.sub_path.is_none() && self.mount.sub_path_expr.is_none();
        whole && (config_map.is_some() || secret.is_some() || projected.is_some() || downward_api.is_some())
    }

    /// The volume type, as named in the API.
    pub(crate) fn kind(&self) -> &'static str {
        let Volume { config_map, secret, projected, host_path, empty_dir, .. } = self.volume;
        let kinds = [
            (config_map.is_some(), "configMap"),
            (secret.is_some(), "secret"),
            (projected.is_some(), "projected"),
            (host_path.is_some(), "hostPath"),
            (empty_dir.is_some(), "emptyDir"),
        ];
        kinds.into_iter().find(|(is, _)| *is).map_or("other", |(_, kind)| kind)
    }
}

/// The key that is written to this path of a volume. Without `items` each key is a file.
fn key<'a>(items: Option<&'a [KeyToPath]>, file: &[&'a str]) -> Option<&'a str> {
    match items {
        None => match file {
            [key] => Some(key),
            _ => None,
        },
        Some(items) => {
            let at = |item: &&KeyToPath| {
                item.path.split('/').filter(|part| !["", "."].contains(part)).eq(file.iter().copied())
            };
            items.iter().find(at).map(|item| item.key.as_str())
        }
    }
}
