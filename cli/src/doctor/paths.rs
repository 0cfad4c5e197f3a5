//! The facts that paths of packets depend on, from a cluster or a dump, by the same readers.

use isp_plan::observe::kube_proxy;

use super::cluster::{Cluster, Missing};
use super::examine::kube_proxy::settings;
use super::kinds::Kind;
use super::{Origin, dump, live};
use crate::connection::Connection;
use crate::error::CommandError;

/// The kinds, besides the `ConfigMap` of kube-proxy.
const KINDS: [Kind; 7] = [
    Kind::IngressSourcePreserve,
    Kind::IngressSourceNode,
    Kind::Service,
    Kind::EndpointSlice,
    Kind::Node,
    Kind::Pod,
    Kind::DaemonSet,
];
/// The kinds without which no path can be followed.
const ESSENTIAL: [Kind; 4] = [Kind::IngressSourcePreserve, Kind::Service, Kind::EndpointSlice, Kind::Node];

/// The facts, and what they lack.
pub(crate) struct PathFacts {
    pub(crate) cluster: isp_paths::Cluster,
    /// A sentence for each gap.
    pub(crate) gaps: Vec<String>,
}

/// Reads the facts of a cluster or a dump.
pub(crate) async fn path_facts(origin: &Origin) -> Result<PathFacts, CommandError> {
    match origin {
        Origin::Dump(path) => path_facts_of(&dump::read(path)?.0),
        Origin::Cluster(connection) => live_path_facts(connection).await,
    }
}

/// Reads the facts of the cluster.
pub(crate) async fn live_path_facts(connection: &Connection) -> Result<PathFacts, CommandError> {
    path_facts_of(&live::read_some(connection, &KINDS, &ESSENTIAL).await?)
}

/// The facts about paths among all facts.
pub(crate) fn path_facts_of(cluster: &Cluster) -> Result<PathFacts, CommandError> {
    for kind in ESSENTIAL {
        if let Some(missing) = cluster.not_looked_at.get(&kind) {
            return Err(essential(kind, missing));
        }
    }
    Ok(complete(cluster))
}

fn essential(kind: Kind, missing: &Missing) -> CommandError {
    let (resource, answer) = (kind.resource(), missing.to_string());
    match missing {
        Missing::Forbidden => CommandError::Forbidden { verb: "list", resource, answer },
        _ => CommandError::Refused { verb: "read", resource, answer },
    }
}

fn complete(cluster: &Cluster) -> PathFacts {
    let missing = KINDS.iter().filter_map(|kind| Some((kind, cluster.not_looked_at.get(kind)?)));
    let mut gaps: Vec<String> = missing
        .map(|(kind, why)| format!("{} were not read: {why}{}", kind.resource(), without(*kind)))
        .collect();
    let named = cluster.objects.iter().find_map(|object| object.spec.kube_proxy.as_ref());
    let found = kube_proxy(&cluster.daemon_sets, named).ok();
    let found = found
        .and_then(|(key, set)| settings(cluster, key, set.object.spec.template.spec.as_ref()?)?.for_paths());
    let mut paths = cluster.paths.clone();
    match found {
        Some(settings) => paths.set_kube_proxy(settings),
        None => gaps.push(
            "the settings of kube-proxy were not found: its defaults are assumed, and the podCIDRs of the nodes as the \
             range of all pods"
                .to_owned(),
        ),
    }
    PathFacts { cluster: paths, gaps }
}

/// What does not show without a kind.
fn without(kind: Kind) -> &'static str {
    match kind {
        Kind::Pod => "; sidecars and gateways do not show",
        Kind::IngressSourceNode => "; every node is taken to serve everything",
        _ => "",
    }
}
