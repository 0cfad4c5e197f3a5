//! The facts of a dump.

use std::path::Path;

use k8s_openapi::jiff::Timestamp;

use super::cluster::{Cluster, Missing, Pod};
use super::kinds::Kind;
use crate::dump;
use crate::error::CommandError;

#[cfg(test)]
mod tests;

/// The facts, and their time: the latest timestamp in the dump.
pub(super) fn read(path: &Path) -> Result<(Cluster, Timestamp), CommandError> {
    let mut cluster = Cluster::default();
    let taken = dump::each(path, "kubectl isp doctor --help", |mut object| {
        let Some(kind) = Kind::of(&object.api_version, &object.kind) else { return Ok(()) };
        let name = object.name();
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
