//! `kubectl isp doctor`: reads the facts of a cluster or a dump, examines them, prints findings.
//!
//! | module | knows |
//! |---|---|
//! | `kinds`, `intake`, `cluster` | the kinds that are read, and the facts taken from them |
//! | `origin`, `live`, `dump` | the two sources of facts |
//! | `examine` | the checks, a pure function |
//! | `judgement` | whether a policy that compares addresses sees the client's |
//! | `selection` | the pods behind a Service |
//! | `mesh`, `policy`, `routes`, `ranges` | Istio's settings and policies, routes, CIDR ranges |
//! | `lists` | address lists of `NetworkPolicy`s and of ingress controllers |
//! | `paths` | the facts of `trace` |
//! | `pod_rules` | the packet rules of pods, with `--rules` |
//! | `balancer` | annotations by which a load balancer is a proxy |
//! | `network` | pod networks and Service proxies, as far as they are recognized |
//! | `finding`, `runbook` | the codes, their severities, and their sections in the runbook |
//! | `report` | the text |

mod balancer;
pub(crate) mod cluster;
pub(crate) mod dump;
pub(crate) mod examine;
pub(crate) mod finding;
mod intake;
pub(crate) mod judgement;
pub(crate) mod kinds;
mod lists;
pub(crate) mod live;
pub(crate) mod mesh;
pub(crate) mod network;
mod origin;
mod paths;
mod pod_rules;
mod policy;
mod ranges;
mod report;
mod routes;
pub(crate) mod runbook;
pub(crate) mod selection;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use self::cluster::{Cluster, Node as NodeFacts, Service as ServiceFacts};
pub(crate) use self::examine::{Examination, examine};
use self::finding::Finding;
pub(crate) use self::finding::{Code, Severity};
use self::kinds::Kind;
pub(crate) use self::origin::Origin;
pub(crate) use self::paths::{PathFacts, live_path_facts, path_facts, path_facts_of};
use crate::Outcome;
use crate::cli::{DoctorArgs, FindingFormat, PlaceArgs};
use crate::error::CommandError;
use crate::output;
use crate::sarif;

/// The kinds without which nothing can be said.
pub(crate) const NEEDED: [Kind; 1] = [Kind::IngressSourcePreserve];

pub(crate) async fn run(place: &PlaceArgs, arguments: &DoctorArgs) -> Result<Outcome, CommandError> {
    let origin = Origin::open(place, arguments.examine.from_dir.as_deref()).await?;
    let (cluster, now) = origin.facts(&NEEDED).await?;
    if let Some(service) = &arguments.examine.service
        && !cluster.services.contains_key(service)
    {
        return Err(CommandError::NoService(service.clone()));
    }
    let mut examination = examine(&cluster, arguments.examine.service.as_ref(), now);
    if let Some(connection) = origin.connection().filter(|_| arguments.rules) {
        let pods = pod_rules::samples(&cluster, arguments.examine.service.as_ref());
        examination.add(pod_rules::compare(connection, &arguments.helper, &pods).await?);
    }
    match arguments.examine.output {
        None => output::print_painted(&report::text(&cluster, &examination, output::width()))?,
        Some(FindingFormat::Json) => output::print(&output::json(&examination)?)?,
        Some(FindingFormat::Yaml) => output::print(&output::yaml(&examination)?)?,
        Some(FindingFormat::Sarif) => {
            let results: Vec<sarif::Finding> = examination.findings.iter().map(Finding::result).collect();
            output::print(&output::json(&sarif::log(&cluster, &results))?)?
        }
    };
    let mut findings = examination.findings.iter();
    Ok(Outcome::of(findings.all(|finding| finding.severity == Severity::Note)))
}
