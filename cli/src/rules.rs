//! `kubectl isp rules`: reads the packet rules of a running pod from its node, explains them, and
//! traces a packet through them.
//!
//! | module | knows |
//! |---|---|
//! | `target` | the pod, and whether its rules can be read |
//! | `read` | the helper pod on the pod's node |
//! | `facts` | what the pod's manifest says about its rules, a pure function |
//! | `reader` | all of it for one pod after the other; `doctor --rules` uses it, too |
//! | `report` | the text |
//!
//! `isp_pod_rules` decodes and explains.

mod error;
mod facts;
mod read;
mod reader;
mod report;
mod target;

use isp_pod_rules::explain::Explanation;
use isp_pod_rules::trace::{Trace, trace};
use schemars::JsonSchema;
use serde::Serialize;

pub(crate) use self::error::RulesError;
pub(crate) use self::reader::{Explained, Reader};
pub(crate) use self::target::Target;
use crate::Outcome;
use crate::cli::{ListFormat, RulesArgs};
use crate::connection::Connection;
use crate::error::CommandError;
use crate::output;

/// The redirect rules of a pod, explained.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report<'a> {
    /// Namespace and name of the pod.
    pod: String,
    /// The node of the pod.
    node: &'a str,
    /// The program that wrote the rules, if it is known.
    written_by: Option<&'static str>,
    #[serde(flatten)]
    explanation: &'a Explanation,
    /// The packet of `--packet`.
    #[serde(skip_serializing_if = "Option::is_none")]
    packet: Option<Traced>,
    /// All rules in the words of `nft` and `ip`, with `--raw`.
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<String>,
}

/// A packet and its way.
#[derive(JsonSchema, Serialize)]
struct Traced {
    /// The packet, as `--packet` takes it.
    packet: String,
    #[serde(flatten)]
    trace: Trace,
}

pub(crate) async fn run(connection: &Connection, arguments: &RulesArgs) -> Result<Outcome, CommandError> {
    let reader = Reader::open(connection, &arguments.helper).await?;
    let Explained { target, rules, explanation, written_by } = reader.explain(&arguments.pod).await?;
    let traced = arguments
        .packet
        .as_ref()
        .map(|packet| Traced { packet: packet.to_string(), trace: trace(&rules, &target.addresses, packet) });
    let report = Report {
        pod: target.key.to_string(),
        node: &target.node,
        written_by,
        explanation: &explanation,
        packet: traced,
        rules: arguments.raw.then(|| report::raw(&rules)),
    };
    match arguments.output {
        None => output::print_painted(&report::text(&report, output::width()))?,
        Some(ListFormat::Json) => output::print(&output::json(&report)?)?,
        Some(ListFormat::Yaml) => output::print(&output::yaml(&report)?)?,
    };
    Ok(Outcome::of(explanation.findings.is_empty()))
}
