//! `kubectl isp plan`: reads the file and the cluster, simulates the operator, prints the result.
//!
//! | module | knows |
//! |---|---|
//! | `file`, `snapshot`, `dump`, `image` | the input: the file, the cluster or a dump of it, the agents' image |
//! | `merge` | the objects after the file is applied |
//! | `forecast` | the simulation, and its result as data |
//! | `end` | the cluster after the last step, for `report` |
//! | `describe` | one sentence for each action |
//! | `redirects` | what new pods get, in words |
//! | `render` | the result as text |

mod describe;
mod dump;
mod end;
pub(crate) mod file;
mod forecast;
mod image;
mod merge;
mod redirects;
mod render;
mod snapshot;

use std::path::Path;

pub(crate) use self::end::{Planned, end};

use isp_api::IngressSourcePreserve;
use isp_plan::Settings;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

pub(crate) use self::forecast::Forecast;
use crate::Outcome;
use crate::cli::{ListFormat, PlaceArgs, PlanArgs};
use crate::connection::Connection;
use crate::error::CommandError;
use crate::text::wrap_lines;
use crate::{output, progress};

pub(crate) async fn run(
    place: &PlaceArgs,
    arguments: &PlanArgs,
    wanted: Vec<IngressSourcePreserve>,
) -> Result<Outcome, CommandError> {
    let forecast = match &arguments.from_dir {
        Some(path) => from_dump(path, arguments, wanted)?,
        None => live(&Connection::open(place).await?, arguments, wanted).await?,
    };
    match arguments.output {
        None => {
            let text = wrap_lines(&render::render(&forecast), output::width(), render::INDENT);
            output::print_painted(&text)?
        }
        Some(ListFormat::Json) => output::print(&output::json(&forecast)?)?,
        Some(ListFormat::Yaml) => output::print(&output::yaml(&forecast)?)?,
    };
    Ok(match forecast.ready() {
        false => Outcome::NotReady,
        true if arguments.exit_code && forecast.changes() => Outcome::Changes,
        true => Outcome::Fine,
    })
}

async fn live(
    connection: &Connection,
    arguments: &PlanArgs,
    wanted: Vec<IngressSourcePreserve>,
) -> Result<Forecast, CommandError> {
    let now = Timestamp::now();
    let before = snapshot::objects(connection).await?;
    let (objects, changes) = merge::merge(before.clone(), wanted, now);
    let cluster = snapshot::read(connection, objects).await?;
    let image = match &arguments.agent_image {
        Some(image) => image.clone(),
        None => image::find(connection, &arguments.namespace, &cluster).await,
    };
    progress::show("planning".to_owned());
    Ok(forecast::forecast(cluster, &before, settings(arguments, image), now, &changes))
}

/// The forecast as of the time when the dump was taken.
fn from_dump(
    path: &Path,
    arguments: &PlanArgs,
    wanted: Vec<IngressSourcePreserve>,
) -> Result<Forecast, CommandError> {
    let (contents, taken) = dump::read(path)?;
    // A new object is younger than everything in the dump: the oldest one owns a Service.
    let now = taken.checked_add(SignedDuration::from_secs(1)).unwrap_or(taken);
    let before = contents.objects();
    let (objects, changes) = merge::merge(before.clone(), wanted, now);
    let (cluster, notes) = contents.cluster(path, objects)?;
    let image = arguments.agent_image.clone();
    let image = image.unwrap_or_else(|| contents.image(&arguments.namespace, &cluster));
    progress::show("planning".to_owned());
    let mut forecast = forecast::forecast(cluster, &before, settings(arguments, image), now, &changes);
    forecast.notes = notes;
    Ok(forecast)
}

fn settings(arguments: &PlanArgs, agent_image: String) -> Settings {
    Settings {
        agent_image,
        agent_pull_secrets: Vec::new(),
        namespace: arguments.namespace.clone(),
        cleanup: false,
    }
}
