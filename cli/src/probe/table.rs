//! The table: sources, destinations, what the target saw beside what was expected, and what is
//! wrong. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::outside::BEFORE_FIRST_NODE;

#[cfg(test)]
pub(super) mod tests;

/// The source that an application behind an Istio sidecar in REDIRECT mode sees for every client.
const SIDECAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 6));

/// Where a request came from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Source {
    /// The machine that runs this program.
    ThisMachine,
    /// A pod on the node.
    Pod { node: String },
    /// The network of the node itself.
    Host { node: String },
}

/// Where it went.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Destination {
    /// An external address of the Service, by its place in the list. A canary has others than the
    /// next one.
    External {
        number: usize,
    },
    NodePort {
        node: String,
    },
    ClusterIp,
}

/// What came of the requests of a cell.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Observed {
    /// The target answered.
    Seen(BTreeSet<Seen>),
    /// The connection was made, but nothing tells which source arrived.
    Reached,
    /// There was no answer, for this reason.
    Silent(String),
}

/// A source that the target saw.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Seen {
    pub(crate) source: IpAddr,
    /// Whose address it is.
    #[serde(default)]
    pub(crate) whose: Whose,
    /// The node of the target that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) target_node: Option<String>,
}

/// Whose address the target saw. Two runs are compared by this, because pods of two runs have
/// different addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Whose {
    /// The source's own.
    Own,
    /// The node's that the source pod runs on: pods leave the cluster with it.
    OwnNode,
    /// Another node's, on its network or on its pods' bridge.
    Node(String),
    /// A sidecar's, which shows the same address for every client.
    Sidecar,
    #[default]
    Unknown,
}

/// What should come of the requests of a cell, along one path.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Expected {
    /// The target sees one of these sources.
    Seen {
        sources: Vec<IpAddr>,
        /// The hop that changes the source, if one does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        changed_by: Option<String>,
        /// Why it does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// There is no answer.
    Silent { reason: String },
    /// It depends on something that cannot be read from the cluster.
    Unclear { reason: String },
}

/// The requests from one source to one destination.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cell {
    pub(crate) from: Source,
    /// The source's own address, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) own: Option<IpAddr>,
    pub(crate) to: Destination,
    pub(crate) address: SocketAddr,
    pub(crate) observed: Observed,
    pub(crate) expected: Vec<Expected>,
    /// The source does not arrive, or there is no answer where there should be one.
    pub(crate) wrong: bool,
    /// The observation is none of the expected ones.
    pub(crate) unexpected: bool,
    /// The hop that changed the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) changed_by: Option<String>,
}

/// The facts by which cells are judged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// The addresses of each node: its own, and those that its pods' bridge may have.
    pub(crate) nodes: BTreeMap<String, BTreeSet<IpAddr>>,
    /// The nodes where the target runs.
    pub(crate) targets: BTreeSet<String>,
    /// Whether the Service is `externalTrafficPolicy: Local`.
    pub(crate) is_local: bool,
}

/// A cell before it is judged.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) from: Source,
    pub(crate) own: Option<IpAddr>,
    pub(crate) to: Destination,
    pub(crate) address: SocketAddr,
    pub(crate) observed: Observed,
    pub(crate) expected: Vec<Expected>,
}

impl Facts {
    /// Whose address a source is, from the point of view of this cell.
    pub(crate) fn whose(&self, from: &Source, own: Option<IpAddr>, source: IpAddr) -> Whose {
        let node = self.nodes.iter().find(|(_, addresses)| addresses.contains(&source)).map(|(name, _)| name);
        match (from, node) {
            _ if own == Some(source) => Whose::Own,
            (Source::Host { node: own }, Some(node)) if own == node => Whose::Own,
            (Source::Pod { node: own }, Some(node)) if own == node => Whose::OwnNode,
            (_, Some(node)) => Whose::Node(node.clone()),
            _ if source == SIDECAR => Whose::Sidecar,
            _ => Whose::Unknown,
        }
    }

    /// Whether no answer is what the Service asks for: a node without endpoints drops external
    /// traffic to its NodePort.
    fn is_silence_intended(&self, to: &Destination) -> bool {
        matches!(to, Destination::NodePort { node } if self.is_local && !self.targets.contains(node))
    }
}

impl Cell {
    pub(crate) fn new(asked: Asked, facts: &Facts) -> Self {
        let Asked { from, own, to, address, mut observed, expected } = asked;
        if let Observed::Seen(all) = &mut observed {
            *all = std::mem::take(all)
                .into_iter()
                .map(|seen| Seen { whose: facts.whose(&from, own, seen.source), ..seen })
                .collect();
        }
        let (wrong, unexpected) = (is_wrong(&observed, &to, facts), !is_expected(&observed, &expected));
        let changed_by = changed_by(&observed, &from, &expected);
        Self { from, own, to, address, observed, expected, wrong, unexpected, changed_by }
    }
}

fn is_wrong(observed: &Observed, to: &Destination, facts: &Facts) -> bool {
    match observed {
        Observed::Seen(all) => all.iter().any(|seen| !matches!(seen.whose, Whose::Own | Whose::OwnNode)),
        Observed::Reached => false,
        Observed::Silent(_) => !facts.is_silence_intended(to),
    }
}

/// Every observation must be one of the expected ones. The reasons of silence are not compared:
/// they depend on the kernel.
fn is_expected(observed: &Observed, expected: &[Expected]) -> bool {
    if expected.iter().any(|each| matches!(each, Expected::Unclear { .. })) {
        return true;
    }
    match observed {
        Observed::Seen(all) => all.iter().all(|seen| path_of(seen.source, expected).is_some()),
        Observed::Reached => expected.iter().any(|each| matches!(each, Expected::Seen { .. })),
        Observed::Silent(_) => expected.iter().any(|each| matches!(each, Expected::Silent { .. })),
    }
}

/// The expected path on which this source arrives.
fn path_of(source: IpAddr, expected: &[Expected]) -> Option<&Expected> {
    expected.iter().find(|each| matches!(each, Expected::Seen { sources, .. } if sources.contains(&source)))
}

/// The hop that changed the source: as the expected path names it, else as the address tells.
fn changed_by(observed: &Observed, from: &Source, expected: &[Expected]) -> Option<String> {
    let Observed::Seen(all) = observed else { return None };
    let mut hops: Vec<String> = Vec::new();
    for seen in all {
        let named = match path_of(seen.source, expected) {
            Some(Expected::Seen { changed_by, .. }) => changed_by.clone(),
            _ => None,
        };
        let hop = match (&seen.whose, from) {
            (Whose::Own, _) => continue,
            (Whose::Sidecar, _) => named.unwrap_or_else(|| "the sidecar of the target".to_owned()),
            (Whose::OwnNode, Source::Pod { node }) | (Whose::Node(node), _) => {
                named.unwrap_or_else(|| format!("SNAT on node {node}"))
            }
            (_, Source::ThisMachine) => BEFORE_FIRST_NODE.to_owned(),
            _ => named.unwrap_or_else(|| "SNAT outside of the cluster's nodes".to_owned()),
        };
        if !hops.contains(&hop) {
            hops.push(hop);
        }
    }
    (!hops.is_empty()).then(|| hops.join("; "))
}

impl fmt::Display for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ThisMachine => out.write_str("this machine"),
            Self::Pod { node } => write!(out, "pod on {node}"),
            Self::Host { node } => write!(out, "host {node}"),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::External { number: 0 } => out.write_str("external"),
            Self::External { number } => write!(out, "external {}", number + 1),
            Self::NodePort { node } => write!(out, "NodePort of {node}"),
            Self::ClusterIp => out.write_str("ClusterIP"),
        }
    }
}
