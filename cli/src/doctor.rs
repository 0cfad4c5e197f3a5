//! `kubectl isp doctor`: gathers the facts, from a cluster or from a dump, and has `examine` say what is wrong with them.
//!
//! | module | knows |
//! |---|---|
//! | `kinds`, `intake`, `cluster` | which objects are looked at, and what of them |
//! | `live`, `dump` | where they come from |
//! | `examine` | the checks, a pure function |
//! | `judgement` | whether a policy that goes by addresses gets the right one |
//! | `mesh`, `ranges` | what Istio is told; ranges of addresses |
//! | `finding` | the codes, and what is said |

mod cluster;
mod dump;
mod examine;
mod finding;
mod intake;
mod judgement;
mod kinds;
mod live;
mod mesh;
mod ranges;

#[cfg(test)]
mod tests;

use k8s_openapi::jiff::Timestamp;

use self::cluster::Cluster;
use self::examine::examine;
use self::finding::{Finding, Severity};
use self::kinds::Kind;
use crate::Outcome;
use crate::cli::{DoctorArgs, ListFormat, PlaceArgs};
use crate::connection::Connection;
use crate::error::CommandError;
use crate::output;
use crate::text::{Block, count};

pub(crate) async fn run(place: &PlaceArgs, arguments: &DoctorArgs) -> Result<Outcome, CommandError> {
    let (cluster, now) = match &arguments.from_dir {
        // Judged as of when it was taken: what is over by now was not then.
        Some(path) => dump::read(path)?,
        None => (live::read(&Connection::open(place).await?).await?, Timestamp::now()),
    };
    if let Some(service) = &arguments.service
        && !cluster.services.contains_key(service)
    {
        return Err(CommandError::NoService(service.clone()));
    }
    let found = examine(&cluster, arguments.service.as_ref(), now);
    match arguments.output {
        None => output::print_painted(&tell(&cluster, &found))?,
        Some(ListFormat::Json) => output::print(&format!("{:#}\n", serde_json::json!(found)))?,
        Some(ListFormat::Yaml) => output::print(&serde_yaml::to_string(&found).unwrap_or_default())?,
    };
    Ok(Outcome::of(found.iter().all(|finding| finding.severity == Severity::Note)))
}

/// A block for each finding, and a line at the end.
fn tell(cluster: &Cluster, found: &[Finding]) -> String {
    let mut text = String::new();
    for finding in found {
        let Finding { code, severity, subject, line, reason, remedy, .. } = finding;
        let mut block = Block::headed(&format!("{} {}  {subject}: {line}", severity.as_str(), code.as_str()));
        block.field("why", [reason.clone()]);
        block.field("to do", remedy.clone());
        text.push_str(&block.0);
        text.push('\n');
    }
    text.push_str(&summary(cluster, found));
    text
}

fn summary(cluster: &Cluster, found: &[Finding]) -> String {
    let number = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
    let looked = format!(
        "{}, {}, {}, {}",
        count(number(cluster.objects.len()), Kind::IngressSourcePreserve.as_str()),
        count(number(cluster.services.len()), "Service"),
        count(number(cluster.nodes.len()), "node"),
        count(number(cluster.pods.len()), "proxy pod"),
    );
    let of = |severity: Severity, word: &str| {
        let length = found.iter().filter(|finding| finding.severity == severity).count();
        (length > 0).then(|| count(number(length), word))
    };
    let counts: Vec<String> =
        [of(Severity::Error, "error"), of(Severity::Warning, "warning"), of(Severity::Note, "note")]
            .into_iter()
            .flatten()
            .collect();
    let counts = if counts.is_empty() { "nothing found".to_owned() } else { counts.join(", ") };
    format!("{counts}; looked at {looked}\n")
}
