//! `kubectl isp doctor`: reads the facts of a cluster or a dump, examines them, prints findings.
//!
//! | module | knows |
//! |---|---|
//! | `kinds`, `intake`, `cluster` | the kinds that are read, and the facts taken from them |
//! | `live`, `dump` | the two sources of facts |
//! | `examine` | the checks, a pure function |
//! | `judgement` | whether a policy that compares addresses sees the client's |
//! | `selection` | the pods behind a Service |
//! | `mesh`, `policy`, `routes`, `ranges` | Istio's settings and policies, routes, CIDR ranges |
//! | `lists` | address lists of `NetworkPolicy`s and of ingress controllers |
//! | `paths` | the facts of `trace` |
//! | `pod_rules` | the packet rules of pods, with `--rules` |
//! | `finding` | the codes and their severities |
//! | `report` | the text |

mod cluster;
mod dump;
mod examine;
mod finding;
mod intake;
mod judgement;
mod kinds;
mod lists;
mod live;
mod mesh;
mod paths;
mod pod_rules;
mod policy;
mod ranges;
mod report;
mod routes;
mod selection;

#[cfg(test)]
mod tests;

use k8s_openapi::jiff::Timestamp;

use self::examine::examine;
use self::finding::Severity;
pub(crate) use self::paths::{PathFacts, live_path_facts, path_facts};
use crate::Outcome;
use crate::cli::{DoctorArgs, ListFormat, PlaceArgs};
use crate::connection::Connection;
use crate::error::CommandError;
use crate::output;

pub(crate) async fn run(place: &PlaceArgs, arguments: &DoctorArgs) -> Result<Outcome, CommandError> {
    let (cluster, now, connection) = if let Some(path) = &arguments.from_dir {
        // A dump is judged as of the time when it was taken.
        let (cluster, taken) = dump::read(path)?;
        (cluster, taken, None)
    } else {
        let connection = Connection::open(place).await?;
        (live::read(&connection).await?, Timestamp::now(), Some(connection))
    };
    if let Some(service) = &arguments.service
        && !cluster.services.contains_key(service)
    {
        return Err(CommandError::NoService(service.clone()));
    }
    let mut examination = examine(&cluster, arguments.service.as_ref(), now);
    if let Some(connection) = connection.filter(|_| arguments.rules) {
        let pods = pod_rules::samples(&cluster, arguments.service.as_ref());
        examination.add(pod_rules::compare(&connection, &arguments.helper, &pods).await?);
    }
    match arguments.output {
        None => output::print_painted(&report::text(&cluster, &examination, output::width()))?,
        Some(ListFormat::Json) => output::print(&output::json(&examination)?)?,
        Some(ListFormat::Yaml) => output::print(&output::yaml(&examination)?)?,
    };
    let mut findings = examination.findings.iter();
    Ok(Outcome::of(findings.all(|finding| finding.severity == Severity::Note)))
}
