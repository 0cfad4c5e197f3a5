//! `kubectl isp trace`: follows a packet through a cluster or a dump, and prints its hops.
//!
//! | module | knows |
//! |---|---|
//! | `asked` | the words of `--from` and `--to` |
//! | `resolve` | the addresses that they mean in this cluster, a pure function |
//! | `group` | which ways differ only in names and addresses |
//! | `report` | the text |
//!
//! `isp_paths` finds the ways.

mod asked;
mod group;
mod report;
mod resolve;

use isp_paths::{Impossible, Key, Path, Protocol, Source, paths};
use schemars::JsonSchema;
use serde::Serialize;
use thiserror::Error;

pub(crate) use self::asked::{Destination, SourceArg};
pub(crate) use self::report::result;
use self::resolve::requests;
use crate::Outcome;
use crate::cli::{ListFormat, PlaceArgs, ProtocolArg, TraceArgs};
use crate::doctor::{Origin, PathFacts, path_facts};
use crate::error::CommandError;
use crate::output;
use crate::outside::unseen;

/// Why nothing can be traced.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages explain each variant")]
pub enum TraceError {
    #[error(transparent)]
    Impossible(#[from] Impossible),
    #[error(
        "Service {service} has several {protocol} ports: write one of {ports} after its name, as in svc/{service}:{first}"
    )]
    WhichPort { service: Key, protocol: &'static str, ports: String, first: u16 },
    #[error("Service {service} has no {protocol} port {port}; it has {ports}")]
    NoPort { service: Key, protocol: &'static str, port: u16, ports: String },
    #[error("Service {service} has no {protocol} port; it has {ports}")]
    NoPorts { service: Key, protocol: &'static str, ports: String },
    #[error(
        "Service {0} has no address for clients outside the cluster: trace from pod/NAMESPACE/NAME or node/NAME, or to one of \
         its addresses"
    )]
    NotExposed(Key),
    #[error(
        "{from} and {to} have no address family in common: use a client with an address of the other family"
    )]
    NoFamily { from: String, to: String },
}

/// Everything that is printed.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    /// The client, as it was asked.
    from: String,
    /// The destination, as it was asked.
    to: String,
    /// `tcp`, `udp` or `sctp`.
    protocol: &'static str,
    /// Whether every way ends well.
    fine: bool,
    /// What was not read, or is in no object.
    gaps: Vec<String>,
    /// Every way that the packet may take.
    paths: Vec<Path>,
}

pub(crate) async fn run(place: &PlaceArgs, arguments: &TraceArgs) -> Result<Outcome, CommandError> {
    let facts = path_facts(&Origin::open(place, arguments.from_dir.as_deref()).await?).await?;
    let report = trace(facts, arguments)?;
    match arguments.output {
        None => output::print_painted(&report::text(&report, output::width()))?,
        Some(ListFormat::Json) => output::print(&output::json(&report)?)?,
        Some(ListFormat::Yaml) => output::print(&output::yaml(&report)?)?,
    };
    Ok(Outcome::of(report.fine))
}

fn trace(facts: PathFacts, arguments: &TraceArgs) -> Result<Report, TraceError> {
    let PathFacts { cluster, mut gaps } = facts;
    let protocol = match arguments.protocol {
        ProtocolArg::Tcp => Protocol::Tcp,
        ProtocolArg::Udp => Protocol::Udp,
        ProtocolArg::Sctp => Protocol::Sctp,
    };
    let mut found: Vec<Path> = Vec::new();
    for request in requests(&cluster, &arguments.from, &arguments.to, protocol, arguments.via.as_deref())? {
        found.extend(paths(&cluster, &request)?);
    }
    let is_kept =
        |path: &Path| matches!(&path.outcome, isp_paths::Outcome::Delivered(delivery) if delivery.kept);
    if matches!(arguments.from.0, Source::Outside(_)) && found.iter().any(is_kept) {
        gaps.push(unseen());
    }
    Ok(Report {
        from: arguments.from.to_string(),
        to: arguments.to.to_string(),
        protocol: protocol.keyword(),
        fine: !found.is_empty() && found.iter().all(Path::is_fine),
        gaps,
        paths: found,
    })
}
