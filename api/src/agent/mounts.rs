//! Which mount of a container holds a path, and what that is in the volume. Paths are compared as text, component by component, as the
//! kernel would take them: `//`, `.` and a slash at the end mean nothing. No file is looked at.

use k8s_openapi::api::core::v1::{Container, KeyToPath, PodSpec, Volume, VolumeMount};

#[cfg(test)]
mod tests;

/// A path of a container, and the mount that it lies in.
#[derive(Clone, Debug, PartialEq)]
pub struct Mounted<'a> {
    /// Its place among the container's mounts.
    pub(super) place: usize,
    /// The innermost mount above the path.
    pub mount: &'a VolumeMount,
    /// What is mounted.
    pub volume: &'a Volume,
    /// The path below the mount; empty when it is the mount itself.
    pub(super) below: Vec<&'a str>,
}

/// The components of an absolute path; none for one that is relative or goes up.
pub(super) fn components(path: &str) -> Option<Vec<&str>> {
    let parts: Vec<&str> =
        path.strip_prefix('/')?.split('/').filter(|part| !["", "."].contains(part)).collect();
    (!parts.contains(&"..")).then_some(parts)
}

/// Where a container finds a path; none when no volume holds it.
pub fn holding<'a>(pod: &'a PodSpec, container: &'a Container, path: &'a str) -> Option<Mounted<'a>> {
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
    /// The ConfigMap that the file is from, and the key there.
    pub fn config_map(&self) -> Option<(&'a str, &'a str)> {
        let file = self.in_volume()?;
        if let Some(map) = &self.volume.config_map {
            return Some((&map.name, key(map.items.as_deref(), &file)?));
        }
        let sources = self.volume.projected.as_ref()?.sources.iter().flatten();
        let mut maps = sources.filter_map(|source| source.config_map.as_ref());
        let named =
            maps.clone().find(|map| map.items.is_some() && key(map.items.as_deref(), &file).is_some());
        // Of several without a list the last one has its way, as it has with the kubelet.
        let map = named.or_else(|| maps.rfind(|map| map.items.is_none()))?;
        Some((&map.name, key(map.items.as_deref(), &file)?))
    }

    /// The path from the volume's root; none when only the kubelet can tell it.
    fn in_volume(&self) -> Option<Vec<&'a str>> {
        if self.mount.sub_path_expr.is_some() {
            return None;
        }
        let part = self.mount.sub_path.as_deref().unwrap_or_default();
        let part = part.split('/').filter(|part| !["", "."].contains(part));
        Some(part.chain(self.below.iter().copied()).collect())
    }

    /// Whether the files are links, which the kubelet turns over when the content changes. A part of such a volume is mounted as it
    /// was at the start.
    pub(super) fn has_links(&self) -> bool {
        let Volume { config_map, secret, projected, downward_api, .. } = self.volume;
        let whole = self.mount.sub_path.is_none() && self.mount.sub_path_expr.is_none();
        whole && (config_map.is_some() || secret.is_some() || projected.is_some() || downward_api.is_some())
    }

    /// The kind of volume, as the API calls it.
    pub fn kind(&self) -> &'static str {
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

/// The key that is written to this path of a volume. Without a list each key is a file.
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
