//! What `kubectl isp trace` says about a case: the plugin itself, as a user runs it.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use isp_testkit::plugin;
use serde::Deserialize;

use crate::cases::{Case, SourceKind};
use crate::observed::End;
use crate::world::PLUGIN;

/// How a way ends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Expected {
    Delivered {
        to: SocketAddr,
        /// `NAMESPACE/NAME`, if the trace knows it.
        pod: Option<String>,
        /// The likely source, and other addresses that the node may choose.
        source: IpAddr,
        others: Vec<IpAddr>,
    },
    Refused,
    Dropped {
        reason: String,
        /// Whether it has left its last node, so that a router may say that it is unreachable.
        outside: bool,
    },
    Leaves(String),
    Unclear(String),
}

impl Expected {
    /// Whether a connection may end like this. A node's own rules that refuse or drop a datagram of
    /// its host are the same error for the sender.
    pub(crate) fn allows(&self, end: &End) -> bool {
        match (self, end) {
            (
                Self::Delivered { to, pod, source, others, .. },
                End::Answered { by, pod: seen_by, source: seen },
            ) => {
                let is_pod = |name: &String| name.rsplit('/').next() == Some(seen_by);
                to == by && (source == seen || others.contains(seen)) && pod.as_ref().is_none_or(is_pod)
            }
            (Self::Refused, End::Refused | End::NotPermitted)
            | (Self::Dropped { .. }, End::TimedOut | End::NotPermitted)
            | (Self::Dropped { outside: true, .. }, End::Unreachable)
            | (Self::Unclear(_), _) => true,
            _ => false,
        }
    }

    /// Whether the pod that answered saw the source that the trace names first.
    pub(crate) fn names_source_of(&self, end: &End) -> bool {
        let (Self::Delivered { to, source, .. }, End::Answered { by, source: seen, .. }) = (self, end) else {
            return false;
        };
        to == by && source == seen
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delivered { to, pod, source, others } => {
                write!(f, "{} ({to}) sees {source}, or one of {others:?}", pod.as_deref().unwrap_or("?"))
            }
            Self::Refused => f.write_str("refused"),
            Self::Dropped { reason, .. } => write!(f, "dropped: {reason}"),
            Self::Leaves(reason) => write!(f, "leaves: {reason}"),
            Self::Unclear(reason) => write!(f, "unclear: {reason}"),
        }
    }
}

/// The ways of a case.
#[derive(Clone, Debug)]
pub(crate) struct Traced {
    pub(crate) ends: BTreeSet<Expected>,
    /// The address that the client sends from.
    pub(crate) own: IpAddr,
}

#[derive(Deserialize)]
struct Report {
    gaps: Vec<String>,
    paths: Vec<Way>,
}

#[derive(Deserialize)]
struct Way {
    sent: Sent,
    hops: Vec<Hop>,
    outcome: Outcome,
}

#[derive(Deserialize)]
struct Hop {
    actor: String,
}

#[derive(Deserialize)]
struct Sent {
    source: Address,
}

#[derive(Deserialize)]
struct Address {
    address: IpAddr,
    #[serde(default)]
    others: Vec<IpAddr>,
}

#[derive(Deserialize)]
#[serde(tag = "result", rename_all = "camelCase")]
enum Outcome {
    Delivered { pod: Option<String>, destination: SocketAddr, application: Address },
    Refused {},
    Dropped { reason: String },
    Leaves { reason: String },
    Unclear { reason: String },
}

/// What no cluster shows about clients outside.
const BEFORE_CLUSTER: &str = "before the first node replaces the source IP is not visible in the cluster";

/// Traces a case. Nothing may be missing in the cluster.
pub(crate) async fn trace(kubeconfig: &Path, case: &Case) -> Traced {
    let mut arguments = case.arguments();
    arguments.extend(["-o", "json"].map(str::to_owned));
    let ended = plugin::end(plugin::command(PLUGIN, kubeconfig, &arguments)).await;
    assert!(matches!(ended.code, Some(0 | 2)) && ended.stderr.is_empty(), "{case}: {ended:?}");
    let report: Report = serde_json::from_str(&ended.stdout).unwrap();
    let is_before_cluster = |gap: &String| case.kind == SourceKind::Outside && gap.contains(BEFORE_CLUSTER);
    assert!(report.gaps.iter().all(is_before_cluster), "{case}: {:?}", report.gaps);
    let own = report.paths[0].sent.source.address;
    let ends = report.paths.into_iter().map(expected).collect();
    Traced { ends, own }
}

fn expected(way: Way) -> Expected {
    match way.outcome {
        Outcome::Delivered { pod, destination, application: Address { address, others } } => {
            Expected::Delivered { to: destination, pod, source: address, others }
        }
        Outcome::Refused {} => Expected::Refused,
        Outcome::Dropped { reason } => {
            Expected::Dropped { reason, outside: way.hops.last().is_some_and(|hop| hop.actor == "routes") }
        }
        Outcome::Leaves { reason } => Expected::Leaves(reason),
        Outcome::Unclear { reason } => Expected::Unclear(reason),
    }
}
