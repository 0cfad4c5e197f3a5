//! The facts of a dump.

use std::path::Path;

use isp_plan::Key;
use k8s_openapi::jiff::Timestamp;

use super::cluster::{Cluster, Missing, Pod};
use super::kinds::Kind;
use crate::dump;
use crate::error::CommandError;

#[cfg(test)]
mod tests;

/// The facts, and their time: the latest timestamp in the dump.
pub(crate) fn read(path: &Path) -> Result<(Cluster, Timestamp), CommandError> {
    let mut cluster = Cluster::default();
    let taken = dump::each(path, "kubectl isp doctor --help", |mut object| {
        // The output of `kubectl version -o yaml` has no kind.
        let version = object.value["serverVersion"]["gitVersion"].as_str();
        if let Some(version) = version.filter(|_| object.kind.is_empty()) {
            cluster.version = Some(version.to_owned());
        }
        let Some(kind) = Kind::of(&object.api_version, &object.kind) else { return Ok(()) };
        let name = object.name();
        cluster.note_origin(kind, Key::new(object.namespace(), name.clone()), object.file);
        let value = object.value.take();
        cluster.take(kind, value).map_err(|problem| object.problem(&name, &problem))
    })?;
    note_missing(&mut cluster);
    Ok((cluster, taken))
}

fn note_missing(cluster: &mut Cluster) {
    let missing = Kind::ALL.into_iter().filter(|kind| kind.is_everywhere());
    for kind in missing.filter(|kind| !cluster.looked_at.contains(kind)).collect::<Vec<_>>() {
        cluster.not_looked_at.insert(kind, Missing::NotInDump);
    }
    let policies = Kind::AuthorizationPolicy;
    if !cluster.knows(policies) && cluster.pods.values().any(Pod::is_in_mesh) {
        cluster.not_looked_at.insert(policies, Missing::PerhapsNotInDump);
    }
}
