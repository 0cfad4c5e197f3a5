//! `kubectl isp check`: what a cluster loses today, whether the project fits it, and a proposed
//! object. It works before anything is installed, and only reads. `doctor` reads the facts and
//! judges Services and policies; this module adds the cluster, the fit and the proposal.
//!
//! | module | knows |
//! |---|---|
//! | `line` | one checked line, and the sections of the report |
//! | `rights` | the kinds that could not be read, and what is unknown without them |
//! | `platform`, `proxy`, `version` | API server, nodes, Service proxy and network |
//! | `services` | the exposed Services: where the source IP is lost, and what is in front |
//! | `policies`, `sidecars`, `installed` | policies, sidecars, and the project itself, by doctor's findings |
//! | `fit` | which mode works |
//! | `proposal` | the object that would preserve the source IP |
//! | `report` | the text |
//! | `write` | the file of `--write` |

mod fit;
mod installed;
mod line;
mod platform;
mod policies;
mod proposal;
mod proxy;
mod report;
mod rights;
mod services;
mod sidecars;
mod version;
mod write;

#[cfg(test)]
mod tests;

use isp_plan::Key;
use k8s_openapi::jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use self::fit::{Fit, fit};
use self::line::{Line, Section, State};
use self::proposal::Proposal;
use crate::Outcome;
use crate::cli::{CheckArgs, FindingFormat, PlaceArgs};
use crate::doctor::Origin;
use crate::doctor::cluster::Cluster;
use crate::doctor::examine::examine;
use crate::doctor::kinds::Kind;
use crate::error::CommandError;
use crate::output::{self, Symbols};
use crate::sarif;

/// The result of all checks.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Check {
    /// The version of the API server, if it is known.
    kubernetes: Option<String>,
    sections: Vec<Section>,
    fit: Fit,
    /// None: nothing that an object could preserve is lost, or no mode works.
    proposal: Option<Proposal>,
}

impl Check {
    fn lines(&self) -> impl Iterator<Item = &Line> {
        self.sections.iter().flat_map(|section| &section.checks)
    }

    /// Whether nothing is lost, no policy misjudges, and all of that is known.
    fn is_fine(&self) -> bool {
        self.lines().all(|line| line.state != State::Failed)
    }
}

/// Checks a whole cluster, or one Service.
fn check(cluster: &Cluster, service: Option<&Key>, now: Timestamp) -> Check {
    let examination = examine(cluster, service, now);
    let services = services::lines(cluster, service);
    let fit = fit(cluster);
    let proposal = proposal::propose(cluster, service, &fit);
    let is_lost = services.iter().any(|line| line.state == State::Failed);
    let sections = vec![
        Section::sorted("rights", rights::lines(cluster)),
        Section::new("cluster", platform::lines(cluster, &examination)),
        Section::sorted("exposed Services", services),
        Section::sorted("policies that compare addresses", policies::lines(cluster, service, &examination)),
        Section::new("sidecars", sidecars::lines(cluster, service)),
        Section::new("modes", platform::modes(&fit, is_lost)),
        Section::new("installation", installed::lines(cluster, &examination)),
    ];
    Check { kubernetes: cluster.version.clone(), sections, fit, proposal }
}

pub(crate) async fn run(place: &PlaceArgs, arguments: &CheckArgs) -> Result<Outcome, CommandError> {
    if let Some(path) = arguments.write.as_deref().filter(|_| !arguments.force) {
        // Before a cluster is read for nothing.
        write::refuse_existing(path)?;
    }
    let origin = Origin::open(place, arguments.examine.from_dir.as_deref()).await?;
    // Without Services there is nothing to say. All other kinds may be missing.
    let (cluster, now) = origin.facts(&[Kind::Service]).await?;
    if let Origin::Dump(path) = &origin
        && !cluster.knows(Kind::Service)
    {
        let problem = "there is no Service in it, so nothing can be checked; `kubectl isp doctor --help` shows how to take a dump";
        return Err(CommandError::Document {
            place: path.display().to_string(),
            problem: problem.to_owned(),
        });
    }
    let service = arguments.examine.service.as_ref();
    if let Some(service) = service.filter(|service| !cluster.services.contains_key(service)) {
        return Err(CommandError::NoService(service.clone()));
    }
    let check = check(&cluster, service, now);
    let file = arguments.write.as_deref();
    if let Some((path, proposal)) = file.zip(check.proposal.as_ref()) {
        write::write(path, &proposal.text(path), arguments.force)?;
    }
    let symbols = Symbols::of_environment();
    match arguments.examine.output {
        None => output::print_painted(&report::text(&check, file, symbols, output::width()))?,
        Some(FindingFormat::Json) => output::print(&output::json(&check)?)?,
        Some(FindingFormat::Yaml) => output::print(&output::yaml(&check)?)?,
        Some(FindingFormat::Sarif) => {
            let results: Vec<_> = check.lines().filter_map(Line::result).collect();
            output::print(&output::json(&sarif::log(&cluster, &results))?)?
        }
    };
    Ok(Outcome::of(check.is_fine()))
}
