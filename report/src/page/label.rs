//! Names of sources and destinations for people.

use std::collections::BTreeMap;

use crate::model::{Destination, Node, Source, SourceKind, WayKind};

/// Names nodes by their pools.
pub(super) struct Labels<'a> {
    pools: BTreeMap<&'a str, &'a str>,
}

impl<'a> Labels<'a> {
    pub(super) fn new(nodes: &'a [Node]) -> Self {
        Self { pools: nodes.iter().map(|node| (node.name.as_str(), node.pool.as_str())).collect() }
    }

    /// `Pod on work-1`, `Pod on 480 nodes of pool default`.
    pub(super) fn source(&self, source: &Source) -> String {
        match source.kind {
            SourceKind::Outside => "Client outside".to_owned(),
            SourceKind::Pod => format!("Pod on {}", self.nodes(&source.nodes)),
            SourceKind::Host => format!("Host of {}", self.nodes(&source.nodes)),
        }
    }

    /// `ClusterIP 10.96.0.7:80`, `NodePort 30080 of work-1`.
    pub(super) fn destination(&self, to: &Destination) -> String {
        let nodes = self.nodes(&to.nodes);
        match (to.kind, to.nodes.is_empty()) {
            (WayKind::ClusterIp, _) => format!("ClusterIP {}", to.address),
            (WayKind::External, true) => format!("External {}", to.address),
            (WayKind::External, false) => format!("External {} at {nodes}", to.address),
            (WayKind::NodePort, true) => format!("NodePort {}", to.address),
            (WayKind::NodePort, false) => {
                let port = to.address.rsplit_once(':').map_or(to.address.as_str(), |(_, port)| port);
                format!("NodePort {port} of {nodes}")
            }
        }
    }

    /// `work-1`, `480 nodes of pool default`.
    pub(super) fn nodes(&self, names: &[String]) -> String {
        match names {
            [] => "no node".to_owned(),
            [one] => one.clone(),
            [first, ..] => {
                let pool = self.pools.get(first.as_str()).copied().unwrap_or_default();
                format!("{} nodes of pool {pool}", names.len())
            }
        }
    }
}
