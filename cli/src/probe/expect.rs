//! What should come of each cell: the paths that `isp_paths` finds in the facts of the cluster.

use isp_paths::{Cluster, Outcome, Path, Protocol, Request, Source as From, paths};
use isp_plan::Key;
use k8s_openapi::api::core::v1::Pod;

use super::table::{Expected, Source};
use crate::connection::Connection;
use crate::doctor::{PathFacts, live_path_facts};
use crate::error::CommandError;

/// Reads the facts. `clients` are the pods that have asked: they have ended, but they had these
/// addresses. What could not be read is noted.
pub(crate) async fn read(
    connection: &Connection,
    clients: Vec<Pod>,
    notes: &mut Vec<String>,
) -> Result<Cluster, CommandError> {
    let PathFacts { mut cluster, gaps } = live_path_facts(connection).await?;
    notes.extend(gaps);
    for mut pod in clients {
        if let Some(status) = &mut pod.status {
            status.phase = Some("Running".to_owned());
        }
        cluster.take_pod(&pod);
    }
    Ok(cluster)
}

/// The source of a cell as the paths know it.
pub(crate) fn source(from: &Source, own: Option<std::net::IpAddr>, pod: Option<&Key>) -> Option<From> {
    match from {
        Source::ThisMachine => own.map(From::Outside),
        Source::Pod { .. } => pod.map(|pod| From::Pod(pod.clone())),
        Source::Host { node } => Some(From::Node(node.clone())),
    }
}

/// The expectation for a connection. A path for each endpoint and each node where traffic may come
/// in.
pub(crate) fn expected(
    cluster: &Cluster,
    source: Option<From>,
    destination: std::net::SocketAddr,
    protocol: Protocol,
) -> Vec<Expected> {
    let Some(source) = source else {
        return vec![Expected::Unclear { reason: "the source's own address is not known".to_owned() }];
    };
    match paths(cluster, &Request { source, destination, protocol, entry: None }) {
        Ok(paths) if paths.is_empty() => {
            vec![Expected::Unclear { reason: "no path is known".to_owned() }]
        }
        Ok(paths) => {
            let mut all: Vec<Expected> = Vec::new();
            for expected in paths.iter().map(along) {
                if !all.contains(&expected) {
                    all.push(expected);
                }
            }
            all
        }
        Err(impossible) => vec![Expected::Unclear { reason: impossible.to_string() }],
    }
}

fn along(path: &Path) -> Expected {
    match &path.outcome {
        Outcome::Delivered(delivery) => match delivery.seen() {
            Some(seen) => {
                let sources = [seen.address].into_iter().chain(seen.others.iter().copied()).collect();
                let changed = path.hops.iter().rev().find(|hop| hop.before.source != hop.after.source);
                let changed_by = changed.map(|hop| format!("{} on {}", hop.actor, hop.place));
                let reason = changed.map(|hop| hop.reason.clone());
                Expected::Seen { sources, changed_by, reason }
            }
            None => Expected::Unclear { reason: "the pod's own proxy decides".to_owned() },
        },
        Outcome::Refused { reason } | Outcome::Dropped { reason } | Outcome::Leaves { reason, .. } => {
            Expected::Silent { reason: reason.clone() }
        }
        Outcome::Unclear { reason } => Expected::Unclear { reason: reason.clone() },
    }
}
