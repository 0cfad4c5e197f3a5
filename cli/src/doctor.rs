//! `kubectl isp doctor`: gathers the facts, from a cluster or from a dump, and has `examine` say what is wrong with them.
//!
//! | module | knows |
//! |---|---|
//! | `kinds`, `intake`, `cluster` | which objects are looked at, and what of them |
//! | `live`, `dump` | where they come from |
//! | `examine` | the checks, a pure function |
//! | `judgement` | whether a policy that goes by addresses gets the right one |
//! | `selection` | which pods a Service leads to |
//! | `mesh`, `policy`, `routes`, `ranges` | Istio's settings and policies; who hands requests on to whom; ranges of addresses |
//! | `lists` | lists of addresses in `NetworkPolicy`s and for controllers of Ingresses |
//! | `finding` | the codes, and what is said |
//! | `report` | how it is laid out, and where it is cut |

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
use crate::Outcome;
use crate::cli::{DoctorArgs, ListFormat, PlaceArgs};
use crate::connection::Connection;
use crate::error::CommandError;
use crate::output;

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
        None => output::print_painted(&report::text(&cluster, &found))?,
        Some(ListFormat::Json) => output::print(&format!("{:#}\n", serde_json::json!(found)))?,
        Some(ListFormat::Yaml) => output::print(&serde_yaml::to_string(&found).unwrap_or_default())?,
    };
    Ok(Outcome::of(found.iter().all(|finding| finding.severity == Severity::Note)))
}
